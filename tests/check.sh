#!/bin/bash
# check.sh: builds and runs every test.  The last line of its output is
# "N passed, N failed", and ", N skipped" if some were.
set -u
cd "$(dirname "$0")/.." || exit 1

work=$(mktemp -d /tmp/muster-check.XXXXXX) || exit 1
trap 'rm -rf "$work"' EXIT
export MUSTER_TALLY=$work/tally
: >"$MUSTER_TALLY"
jobs=$(nproc)

# Runs one step that counts as one test of its own.
step() {
	local title=$1
	shift
	printf '== %s\n' "$title"
	if "$@" >"$work/out" 2>&1; then
		echo 1 0 0 >>"$MUSTER_TALLY"
		return 0
	fi
	cat "$work/out"
	printf '  FAILED: %s\n' "$title"
	echo 0 1 0 >>"$MUSTER_TALLY"
	return 1
}

build() {
	make -s -j"$jobs" DEPS=no VARIANT="$1" binaries tools units
}

# The tests count themselves.
suite() {
	printf '== %s\n' "$1"
	shift
	"$@" || :
}

step "house rules" tests/rules.py
step "manual pages" tests/man.sh
if step "release build, warnings are errors" build release; then
	suite "unit tests" make -s DEPS=no unit
	suite "whole-system tests" tests/run_integration.sh
	step "installation" tests/installation.sh
fi
if step "build with AddressSanitizer and UBSan" build asan; then
	suite "unit tests under the sanitizers" \
	    make -s DEPS=no VARIANT=asan unit
fi

read -r passed failed skipped < <(awk '
	{ p += $1; f += $2; s += $3 } END { print p + 0, f + 0, s + 0 }
' "$MUSTER_TALLY")
printf '%d passed, %d failed' "$passed" "$failed"
[ "$skipped" -eq 0 ] || printf ', %d skipped' "$skipped"
printf '\n'
[ "$failed" -eq 0 ]
