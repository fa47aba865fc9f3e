#!/bin/bash
# lint.sh: everything that reads the code without running it.  Each tool has
# its say; the exit status is non-zero when one of them objects.
set -u
cd "$(dirname "$0")/.." || exit 1

status=0
sources=$(git ls-files -co --exclude-standard '*.c')
headers=$(git ls-files -co --exclude-standard '*.h')
includes="-D_GNU_SOURCE -I. -Ibuild/clang/gen"

step() {
	local title=$1
	shift
	printf '== %s\n' "$title"
	"$@" || { printf '  objection: %s\n' "$title"; status=1; }
}

tidy() {
	xargs -P "$(nproc)" -I{} clang-tidy --quiet {} -- -std=gnu17 \
	    -DMUSTER_VERSION='""' $includes <<<"$sources" 2>&1 |
	    grep -vE '^[0-9]+ warnings? (generated|treated)' || return 0
	return 1
}

step "house rules" tests/rules.py
step "manual pages" tests/man.sh
step "layout (make format settles it)" \
    clang-format --dry-run --Werror $sources $headers
step "clang, warnings are errors" \
    make -s -j"$(nproc)" DEPS=no CC=clang B=build/clang binaries tools units
# Uninitialized memory is left to gcc and clang, who know more of it.  The two
# headers have loops as macros, which cppcheck must see to read on.
queue=$(gcc -E -include sys/queue.h - </dev/null |
    sed -n 's/^# .*"\(.*queue.h\)".*/\1/p' | head -n 1)
step "cppcheck" cppcheck --quiet --std=c11 --inline-suppr -j "$(nproc)" \
    --enable=warning,performance,portability --suppress=missingInclude \
    --suppress=uninitvar --suppress=uninitStructMember \
    --suppress=funcArgOrderDifferent --include="$queue" \
    --include=/usr/include/jansson.h --error-exitcode=1 $includes $sources
step "clang-tidy" tidy
exit $status
