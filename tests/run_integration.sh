#!/bin/bash
# run_integration.sh: runs the whole-system tests, a pytest process for each
# file and two at a time (JOBS); a line each, and the whole output of one that
# fails.
#
# usage: run_integration.sh [FILE...]
#
# VARIANT (release, asan) or MUSTER_BIN says which binaries.  With
# MUSTER_TALLY=FILE it adds lines "passed failed skipped" to FILE.
set -u
cd "$(dirname "$0")/.." || exit 1

run_file() {
	local file=$1 name work status p f s took began=$SECONDS
	name=$(basename "$file")
	work=$(mktemp -d /tmp/muster-test.XXXXXX) || exit 1
	PYTHONDONTWRITEBYTECODE=1 MUSTER_TALLY=$work/tally timeout 900 \
	    /usr/bin/python3 -m pytest -q -p no:cacheprovider --tb=short \
	    --basetemp="$work/t" "$file" >"$work/out" 2>&1
	status=$?
	if ! read -r p f s 2>/dev/null <"$work/tally"; then
		p=0 f=1 s=0
	fi
	[ -z "${MUSTER_TALLY:-}" ] || echo "$p $f $s" >>"$MUSTER_TALLY"
	took="$((SECONDS - began)) s"
	if [ "$f" -eq 0 ]; then
		printf '  TEST  %s: %d passed%s (%s)\n' "$name" "$p" \
		    "$([ "$s" -eq 0 ] || echo ", $s skipped")" "$took"
	else
		# One write: two files may fail at once.
		printf '%s\n  TEST  %s: %d passed, %d FAILED (%s, exit status %d)\n' \
		    "$(cat "$work/out")" "$name" "$p" "$f" "$took" $status
	fi
	rm -rf "$work"
	[ "$f" -eq 0 ]
}

if [ "${1:-}" = --one ]; then
	run_file "$2"
	exit
fi
[ $# -gt 0 ] || set -- tests/integration/test_*.py
printf '%s\0' "$@" | xargs -0 -n 1 -P "${JOBS:-2}" "$0" --one
