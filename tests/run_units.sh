#!/bin/bash
# run_units.sh: runs unit test binaries; a line each, and the whole output of
# one that fails.
#
# usage: run_units.sh BINARY...
#
# With MUSTER_TALLY=FILE it adds a line "passed failed skipped" to FILE.
set -u

# Counts the TAP lines of cmocka.  A binary that dies on its way owes the
# tests that it announced.
count() {
	awk '/^1\.\.[0-9]+/ { planned += substr($0, 4) }
	     /^ok [0-9].*# SKIP/ { skipped++; next }
	     /^ok [0-9]/ { passed++ }
	     END { print passed + 0, planned - passed - skipped, skipped + 0 }'
}

passed=0 failed=0 skipped=0
for binary; do
	name=${binary#*tests/unit/}
	out=$(CMOCKA_MESSAGE_OUTPUT=TAP timeout 120 "$binary" 2>&1)
	status=$?
	read -r p f s <<<"$(count <<<"$out")"
	if [ $status -ne 0 ] && [ "$f" -eq 0 ]; then
		f=1
	fi
	passed=$((passed + p)) failed=$((failed + f)) skipped=$((skipped + s))
	if [ "$f" -eq 0 ]; then
		printf '  UNIT  %s: %d passed\n' "$name" "$p"
	else
		printf '%s\n' "$out"
		printf '  UNIT  %s: %d passed, %d FAILED (exit status %d)\n' \
		    "$name" "$p" "$f" $status
	fi
done
[ -z "${MUSTER_TALLY:-}" ] || echo $passed $failed $skipped >>"$MUSTER_TALLY"
[ $failed -eq 0 ]
