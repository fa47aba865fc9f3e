#!/bin/sh
# install.sh: puts everything where it belongs below DESTDIR and PREFIX, or
# takes it away again.
#
# usage: B=build/release VERSION=N [DESTDIR=...] [PREFIX=/usr] install.sh
#        [DESTDIR=...] [PREFIX=/usr] install.sh --remove
#
# It installs files and nothing else: no service is enabled, no user made.
set -eu
cd "$(dirname "$0")/.."

prefix=${PREFIX:-/usr}
root=${DESTDIR:-}$prefix
bash_dir=$root/share/bash-completion/completions
zsh_dir=$root/share/zsh/vendor-completions
unit_dir=$root/lib/systemd/system

if [ "${1:-}" = --remove ]; then
	for page in docs/man/*.[1-9]; do
		rm -f "$root/share/man/man${page##*.}/$(basename "$page")"
	done
	rm -f "$root/sbin/proxyd" "$root/sbin/nodeagent" "$root/bin/clusterctl" \
	    "$unit_dir/muster-proxyd.service" \
	    "$unit_dir/muster-nodeagent.service" \
	    "$bash_dir/clusterctl" "$zsh_dir/_clusterctl"
	exit
fi

install -D -m 755 -t "$root/sbin" "$B/proxyd" "$B/nodeagent"
install -D -m 755 -t "$root/bin" "$B/clusterctl"
for page in docs/man/*.[1-9]; do
	install -D -m 644 -t "$root/share/man/man${page##*.}" "$page"
done
for unit in packaging/*.service; do
	install -D -m 644 -t "$unit_dir" "$unit"
	sed -i "s|@PREFIX@|$prefix|" "$unit_dir/$(basename "$unit")"
done
install -d -m 755 "$bash_dir" "$zsh_dir"
"$B/clusterctl" completion bash >"$bash_dir/clusterctl"
"$B/clusterctl" completion zsh >"$zsh_dir/_clusterctl"
chmod 644 "$bash_dir/clusterctl" "$zsh_dir/_clusterctl"
