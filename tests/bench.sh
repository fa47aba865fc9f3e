#!/bin/bash
# bench.sh: measures against the peers, side by side in one run, and shows
# each figure with its budget.
#
# usage: bench.sh [NAME...]     (exec, nodeset ...: bench_NAME.py; all of them)
set -u
cd "$(dirname "$0")/.." || exit 1

make -s -j"$(nproc)" DEPS=no binaries tools || exit 1
[ $# -gt 0 ] || set -- $(ls tests/bench/bench_*.py | sed 's/.*bench_\(.*\)\.py/\1/')
ulimit -n "$(ulimit -Hn)"
printf '%s, %d processors, Linux %s, %s\n' \
    "$(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -n 1)" \
    "$(nproc)" "$(uname -r)" "$(date -u +%F)"
status=0
for name; do
	PYTHONDONTWRITEBYTECODE=1 /usr/bin/python3 "tests/bench/bench_$name.py" ||
	    status=1
done
[ $status -eq 0 ] || echo "
Some budgets were missed."
exit $status
