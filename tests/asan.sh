#!/bin/bash
# asan.sh: unit and whole-system tests under AddressSanitizer and UBSan.
set -u
cd "$(dirname "$0")/.." || exit 1
export VARIANT=asan

make -s -j"$(nproc)" DEPS=no binaries tools units || exit 1
status=0
make -s DEPS=no unit || status=1
tests/run_integration.sh || status=1
exit $status
