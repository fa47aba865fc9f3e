#!/bin/sh
# deps.sh: installs the Debian packages that a group of targets needs.
#
# usage: deps.sh build|demo|test|lint|bench
#
# Says nothing when all is there.  No service is started by it, and none that
# it installs will start at the next boot: the tests run their own copies on
# loopback addresses.
set -eu

build="gcc make libc6-dev libevent-dev libsodium-dev libjansson-dev
    libsqlite3-dev libssl-dev zlib1g-dev libbrotli-dev"
demo="$build curl openssl"
test="$build libcmocka-dev python3 python3-pytest openssl mandoc faketime
    nginx libnginx-mod-stream haproxy apache2-bin media-types curl wrk siege
    chromium python3-brotli mariadb-server-core mariadb-client-core"
lint="$build libcmocka-dev clang libclang-rt-14-dev clang-tidy clang-format
    cppcheck universal-ctags mandoc"
bench="$build clustershell pdsh openssh-client openssh-server nginx haproxy
    apache2-bin wrk strace"
services="nginx haproxy ssh"	# units that these packages would enable

case "${1:-}" in
build) wanted=$build ;;
demo) wanted=$demo ;;
test) wanted=$test ;;
lint) wanted=$lint ;;
bench) wanted=$bench ;;
*) echo "usage: deps.sh build|demo|test|lint|bench" >&2; exit 2 ;;
esac

if ! command -v dpkg-query >/dev/null || ! command -v apt-get >/dev/null; then
	echo "This is no Debian system; make sure that the equivalents of these" \
	    "packages are installed:" $wanted >&2
	exit 0
fi

missing=
for package in $wanted; do
	case "$(dpkg-query -W -f='${db:Status-Status}' "$package" 2>/dev/null)" in
	installed) ;;
	*) missing="$missing $package" ;;
	esac
done
[ -n "$missing" ] || exit 0

echo "Installing Debian packages:$missing"
if [ "$(id -u)" -ne 0 ]; then
	if command -v sudo >/dev/null; then
		exec sudo "$0" "$@"
	fi
	echo "Not root, and there is no sudo.  As root, type:" >&2
	echo "  apt-get install$missing" >&2
	echo "or make with DEPS=no if you have them elsewhere." >&2
	exit 1
fi

# Debian starts what it installs unless policy-rc.d says 101.  One that is
# there already is the administrator's and stays as it is.
policy=/usr/sbin/policy-rc.d
mark="# muster: nothing is started while packages are installed"
if [ ! -e $policy ] || grep -qxF "$mark" $policy; then
	trap 'rm -f $policy' EXIT
	trap 'exit 130' INT TERM HUP
	printf '#!/bin/sh\n%s\nexit 101\n' "$mark" >$policy
	chmod 755 $policy
fi

enabled() {
	[ -e "/etc/systemd/system/multi-user.target.wants/$1.service" ]
}
before=
for s in $services; do
	! enabled "$s" || before="$before $s "
done

install() {
	DEBIAN_FRONTEND=noninteractive apt-get install -q -y \
	    --no-install-recommends -o Dpkg::Use-Pty=0 $missing </dev/null
}
log=$(mktemp)
if ! install >"$log" 2>&1; then
	# No package lists yet, or lists that are out of date.
	apt-get update -q >"$log" 2>&1 && install >>"$log" 2>&1 || {
		tail -n 20 "$log" >&2
		echo "The packages could not be installed (all of it: $log)." >&2
		exit 1
	}
fi
rm -f "$log"

for s in $services; do
	case "$before" in
	*" $s "*) continue ;;
	esac
	if enabled "$s"; then
		update-rc.d "$s" disable
		echo "(the service $s came with it; it is not started nor enabled)"
	fi
done
