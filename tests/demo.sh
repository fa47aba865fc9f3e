#!/bin/bash
# demo.sh: a small cluster on loopback addresses: one master, three workers,
# and the main job.  On a terminal it is left running to play with.
#
# usage: demo.sh             (DEMO=once: take it down at the end)
#        demo.sh --stop DIR  ends what a demo has left running
set -u
cd "$(dirname "$0")/.." || exit 1
bin=$PWD/${B:-build/release}
self=$PWD/tests/demo.sh
workers="web1 web2 web3"

# Ends the agents below a demo's directory, by the pids in their locks, and
# removes it.
stop() {
	local dir=$1 pidfile pid
	[ -e "$dir/muster-demo" ] || {
		echo "$dir is no demo of muster" >&2
		return 2
	}
	for pidfile in "$dir"/*.pid; do
		pid=$(cat "$pidfile" 2>/dev/null) || continue
		# A pid may have passed on to somebody else.
		grep -qzF "$dir/" "/proc/$pid/cmdline" 2>/dev/null || continue
		kill "$pid"
		tail --pid="$pid" -s 0.05 -f /dev/null
	done
	rm -rf "$dir"
}

if [ "${1:-}" = --stop ]; then
	stop "${2:?usage: demo.sh --stop DIR}"
	exit
fi

# ---- showing ----

bold='' plain=''
if [ -t 1 ] && [ -z "${NO_COLOR:-}" ]; then
	bold=$'\033[1m' plain=$'\033[0m'
fi

say() {
	printf '\n%s# %s%s\n' "$bold" "$*" "$plain"
}

# Shows a command as one would type it, runs it, and shows how it ended when
# that is not 0.
show() {
	local status word line='$'
	for word; do
		case $word in
		*[!A-Za-z0-9_./:=@-]*) line+=" ${word@Q}" ;;
		*) line+=" $word" ;;
		esac
	done
	printf '%s\n' "$line"
	"$@"
	status=$?
	[ $status -eq 0 ] || printf '[exit status %d]\n' $status
	return $status
}

give_up() {
	echo "demo: $*" >&2
	stop "$dir"
	exit 1
}

# ---- the cluster ----

# The first port that is free on all four addresses.
free_port() {
	local port host
	for port in {7400..7499}; do
		for host in 127.0.0.{1..4}; do
			(: <>"/dev/tcp/$host/$port") 2>/dev/null && continue 2
		done
		echo "$port"
		return
	done
	return 1
}

# Starts a node's agent and returns when it is ready.
start() {
	local name=$1 ready=$dir/$1.ready word=
	mkfifo "$ready"
	setsid nodeagent --state "$dir/$name" run --ready-fd 9 \
	    9>"$ready" </dev/null >"$dir/$name.log" 2>&1 &
	echo $! >"$dir/$name.pid"
	disown
	read -r word <"$ready"
	rm "$ready"
	[ "$word" = ready ] || give_up "$name does not start:" \
	    "$(cat "$dir/$name.log")"
}

base=${XDG_RUNTIME_DIR:-/tmp}
[ -d "$base" ] && [ -w "$base" ] || base=/tmp
dir=$(mktemp -d "$base/muster-demo.XXXXXX") || exit 1
: >"$dir/muster-demo"
trap 'stop "$dir"; exit 130' INT TERM HUP
port=$(free_port) || give_up "no port from 7400 to 7499 is free"
export PATH=$bin:$PATH MUSTER_STATE=$dir/master

say "This machine becomes the first master of a cluster"
show clusterctl init --cluster demo --name master \
    --address "127.0.0.1:$port" || give_up "init failed"
start master

say "Each machine joins with one pasted line"
n=1
for name in $workers; do
	n=$((n + 1))
	line=$(clusterctl enroll --role worker_http) || give_up "enroll failed"
	token=$(grep -o 'muster1\.[A-Za-z0-9_-]*' <<<"$line" | head -n 1)
	[ $name != web1 ] || printf '$ clusterctl enroll --role worker_http\n%s\n' \
	    "$line"
	printf '\n$ nodeagent join %.24s... --name %s\n' "$token" $name
	nodeagent --state "$dir/$name" join "$token" --name $name \
	    --address "127.0.0.$n:$port" --no-start || give_up "join failed"
	start $name
done

say "The cluster"
show clusterctl show_nodes

say "The main job: a command on every node with a role, honest results"
show clusterctl exec -r worker_http 'echo "I am $MUSTER_NODE"'
show clusterctl exec -r worker_http -g uname -sr

say "web3 dies (kill -9)"
kill -9 "$(cat "$dir/web3.pid")"
show clusterctl exec -r worker_http 'echo "I am $MUSTER_NODE"'
show clusterctl show_nodes

if [ "${DEMO:-}" = once ] || [ ! -t 1 ]; then
	stop "$dir"
	exit
fi
trap - INT TERM HUP
say "It is left running.  To play on, paste this:"
cat <<END
export PATH=$bin:\$PATH MUSTER_STATE=$MUSTER_STATE
clusterctl help
clusterctl exec -r worker_http -g 'cat /etc/debian_version'
clusterctl nodeset fold web1 web2 web3

To end it:
$self --stop $dir
END
