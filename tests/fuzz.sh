#!/bin/bash
# fuzz.sh: runs every fuzzer for FUZZ_SECONDS (120) under AddressSanitizer and
# UBSan, two at a time (JOBS).  What a fuzzer finds is left in build/fuzz/found.
#
# Seeds are tests/fuzz/corpus/NAME/ for fuzz_NAME; what a run learns is kept
# in build/fuzz/corpus for the next one.
set -u
cd "$(dirname "$0")/.." || exit 1

run_one() {
	local binary=$1 name seeds learnt log
	name=$(basename "$binary")
	seeds=tests/fuzz/corpus/${name#fuzz_}
	learnt=build/fuzz/corpus/$name
	log=build/fuzz/$name.log
	mkdir -p "$learnt" build/fuzz/found
	[ -d "$seeds" ] || seeds=
	# -rss_limit_mb and -timeout make a hog or a loop a finding.
	if "$binary" -max_total_time="${FUZZ_SECONDS:-120}" -timeout=10 \
	    -rss_limit_mb=1024 -print_final_stats=1 \
	    -artifact_prefix="build/fuzz/found/$name-" \
	    "$learnt" $seeds >"$log" 2>&1; then
		printf '  FUZZ  %s: %s runs, no finding\n' "$name" "$(sed -n \
		    's/^stat::number_of_executed_units: *//p' "$log")"
		return 0
	fi
	tail -n 60 "$log"
	printf '  FUZZ  %s: FINDING (all of it: %s)\n' "$name" "$log"
	return 1
}

if [ "${1:-}" = --one ]; then
	run_one "$2"
	exit
fi
make -s -j"$(nproc)" DEPS=no VARIANT=fuzz fuzzers || exit 1
find build/fuzz/tests/fuzz -type f -name 'fuzz_*' -perm -u+x -print0 | sort -z |
	xargs -0 -r -n 1 -P "${JOBS:-$(nproc)}" "$0" --one
