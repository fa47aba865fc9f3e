#!/bin/bash
# man.sh: every program has a manual page, and mandoc has nothing to say
# about any of them.
set -u
cd "$(dirname "$0")/.." || exit 1

status=0
for page in proxyd.8 nodeagent.8 clusterctl.8 muster-proto.7; do
	if [ ! -e docs/man/$page ]; then
		echo "docs/man/$page is missing"
		status=1
	fi
done
for page in docs/man/*.[1-9]; do
	[ ! -e "$page" ] || mandoc -T lint -W warning "$page" || status=1
done
exit $status
