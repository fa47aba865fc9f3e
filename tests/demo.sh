#!/bin/bash
# demo.sh: a small cluster on loopback addresses: one master, three workers;
# commands on all of them, and a site before two.  On a terminal it is left
# running to play with.
#
# usage: demo.sh             (DEMO=once: take it down at the end)
#        demo.sh --stop DIR  ends what a demo has left running
set -u
cd "$(dirname "$0")/.." || exit 1
bin=$PWD/${B:-build/release}
self=$PWD/tests/demo.sh
origin=$bin/tests/integration/origin
workers="web1 web2 web3"

# Ends the programs of a demo's directory, by their pid files, and removes
# it.
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

# The first port from $1 on that is free on all four addresses.
free_port() {
	local port host
	for ((port = $1; port < $1 + 100; port++)); do
		for host in 127.0.0.{1..4}; do
			(: <>"/dev/tcp/$host/$port") 2>/dev/null && continue 2
		done
		echo "$port"
		return
	done
	return 1
}

# Starts a program that lives on, under a name; it has descriptor 9 to say
# that it is ready.
run() {
	local name=$1 ready=$2
	shift 2
	setsid "$@" 9>"$ready" </dev/null >"$dir/$name.log" 2>&1 &
	echo $! >"$dir/$name.pid"
	disown
}

# Starts a daemon on a state directory and returns when it is ready.
start() {
	local name=$1 program=$2 state=$3 ready=$dir/$1.ready word=
	mkfifo "$ready"
	run "$name" "$ready" "$program" --state "$state" run --ready-fd 9
	read -r word <"$ready"
	rm "$ready"
	[ -n "$word" ] || give_up "$name does not start:" \
	    "$(cat "$dir/$name.log")"
}

# Until a command says what it shall: what was set reaches the proxy a moment
# later.
await() {
	local text=$1 i
	shift
	for ((i = 0; i < 200; i++)); do
		"$@" >"$dir/await.log" 2>&1
		! grep -q "$text" "$dir/await.log" || return 0
		sleep 0.1
	done
	give_up "waited for $text in vain: $*: $(cat "$dir/await.log")"
}

# The proxy's workers have an account of their own: they must get to the
# site's home in there.
base=${XDG_RUNTIME_DIR:-/tmp}
[ -d "$base" ] && [ -w "$base" ] && [ "$(id -u)" -ne 0 ] || base=/tmp
dir=$(mktemp -d "$base/muster-demo.XXXXXX") || exit 1
chmod 711 "$dir"
: >"$dir/muster-demo"
trap 'stop "$dir"; exit 130' INT TERM HUP
port=$(free_port 7400) && web=$(free_port 7500) &&
    http=$(free_port 8000) && https=$(free_port 8400) ||
    give_up "no port is free"
export PATH=$bin:$PATH MUSTER_STATE=$dir/master

say "This machine becomes the first master of a cluster"
show clusterctl init --cluster demo --name master \
    --address "127.0.0.1:$port" || give_up "init failed"
start master nodeagent "$dir/master"

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
	start $name nodeagent "$dir/$name"
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

# ---- the site ----

site=shop.example
# So that curl finds the site here, and believes its certificate.
export CURL_HOME=$dir
cat >"$dir/.curlrc" <<END
silent
show-error
resolve = $site:$http:127.0.0.1
resolve = $site:$https:127.0.0.1
cacert = $dir/cert.pem
END
: >"$dir/cert.pem"
mkdir -m 755 "$dir/home"
for i in {1..100}; do
	echo ".column$i { width: $((i % 100))%; }"
done >"$dir/home/style.css"

n=1
for name in web1 web2; do
	n=$((n + 1))
	printf '<p>This is %s.\n' $name >"$dir/$name.page"
	run "$name-web" /dev/null "$origin" 127.0.0.$n "$web" "$dir/$name.page"
done

say "A customer's site before web1 and web2, which have a web server each"
show clusterctl role set worker_http --port "$web" --interval 1s \
    --health 'http GET / 200-399'
show clusterctl site add $site --owner anna --home "$dir/home"
show clusterctl set proxy.http.listen "127.0.0.1:$http"
# Not shown: a port that nobody else has; we may ask why.
clusterctl set proxy.status.listen off >"$dir/set.log"
clusterctl set proxy.trusted 127.0.0.0/8 >>"$dir/set.log"
echo '$ proxyd run &'
start proxy proxyd "$dir/master"
await 'This is' curl "http://$site:$http/"
show curl "http://$site:$http/cart" "http://$site:$http/cart"

say "Its plain files are served by the proxy, its answers compressed"
show clusterctl site set $site --static on --compress gzip,br
await 'Content-Encoding: br' curl --head --header 'Accept-Encoding: br' \
    "http://$site:$http/style.css"
show curl --head --header 'Accept-Encoding: br' --header 'X-Muster-Why: 1' \
    "http://$site:$http/style.css"

say "https, with a certificate made here"
show openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes \
    -days 30 -subj "/CN=$site" -addext "subjectAltName=DNS:$site" \
    -keyout "$dir/key.pem" -out "$dir/cert.pem" || give_up "no certificate"
show clusterctl site cert $site --cert "$dir/cert.pem" --key "$dir/key.pem" ||
    give_up "the certificate is refused"
show clusterctl set proxy.https.listen "127.0.0.1:$https"
show clusterctl site set $site --https-redirect on
await 'This is' curl "https://$site:$https/"
show curl "https://$site:$https/pay"
show curl --location --write-out 'after %{num_redirects} redirect\n' \
    "http://$site:$http/pay"

say "The web server of web1 dies; twenty requests meanwhile"
kill "$(cat "$dir/web1-web.pid")"
printf '$ for i in {1..20}; do curl --output /dev/null --write-out \
    "%%{http_code}\\n" https://%s:%s/; done | sort | uniq -c\n' $site "$https"
for i in {1..20}; do
	curl --output /dev/null --write-out '%{http_code}\n' \
	    "https://$site:$https/"
done | sort | uniq -c
await 'web1.*down' clusterctl show_nodes --traffic
show clusterctl show_nodes --traffic
show clusterctl show_sites

if [ "${DEMO:-}" = once ] || [ ! -t 1 ]; then
	stop "$dir"
	exit
fi
trap - INT TERM HUP
say "It is left running.  To play on, paste this:"
cat <<END
export PATH=$bin:\$PATH MUSTER_STATE=$MUSTER_STATE CURL_HOME=$CURL_HOME
clusterctl help
clusterctl exec -r worker_http -g 'cat /etc/debian_version'
clusterctl nodeset fold web1 web2 web3
curl https://$site:$https/
clusterctl show_sites

To end it:
$self --stop $dir
END
