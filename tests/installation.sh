#!/bin/bash
# installation.sh: make install puts each file where it belongs, with its
# mode, and make uninstall takes all of them away.
set -u
cd "$(dirname "$0")/.." || exit 1

root=$(mktemp -d /tmp/muster-install.XXXXXX) || exit 1
trap 'rm -rf "$root"' EXIT
status=0

complain() {
	echo "$*"
	status=1
}

expect() {
	local mode=$1 file=$root/$2
	if [ ! -f "$file" ]; then
		complain "$2 is not installed"
	elif [ "$(stat -c %a "$file")" != "$mode" ]; then
		complain "$2 has mode $(stat -c %a "$file"), not $mode"
	fi
}

make -s DEPS=no DESTDIR="$root" install || exit 1
for program in proxyd nodeagent; do
	expect 755 usr/sbin/$program
	expect 644 usr/lib/systemd/system/muster-$program.service
	expect 644 usr/share/man/man8/$program.8
done
expect 755 usr/bin/clusterctl
expect 644 usr/share/man/man8/clusterctl.8
expect 644 usr/share/bash-completion/completions/clusterctl
expect 644 usr/share/zsh/vendor-completions/_clusterctl

bash -n "$root/usr/share/bash-completion/completions/clusterctl" || status=1
"$root/usr/bin/clusterctl" version >/dev/null || status=1
if command -v systemd-analyze >/dev/null; then
	# It looks for the programs where they will be, so run it below root.
	said=$(systemd-analyze verify --root="$root" --man=no \
	    /lib/systemd/system/muster-{proxyd,nodeagent}.service 2>&1 |
	    grep -E 'muster-(proxyd|nodeagent)\.service:.*[0-9]+: ')
	[ -z "$said" ] || complain "$said"
fi

make -s DEPS=no DESTDIR="$root" uninstall || exit 1
left=$(find "$root" -type f)
[ -z "$left" ] || complain "uninstall leaves: $left"
exit $status
