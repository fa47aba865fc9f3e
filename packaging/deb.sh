#!/bin/bash
# deb.sh: builds build/muster_VERSION_ARCH.deb from build/release.
#
# usage: deb.sh VERSION
set -euo pipefail
cd "$(dirname "$0")/.."

version=$1
arch=$(dpkg --print-architecture)
root=build/deb
package=build/muster_${version}_$arch.deb
# The same tree gives the same package.
epoch=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct 2>/dev/null || date +%s)}
export SOURCE_DATE_EPOCH=$epoch

# The packages that own the libraries which the programs are linked with.
library_depends() {
	local path
	ldd build/release/{proxyd,nodeagent,clusterctl} |
	    awk '$2 == "=>" { print $3 }' | sort -u | while read -r path; do
		# The package may know it by its place before /usr was merged.
		dpkg-query -S "$path" 2>/dev/null ||
		    dpkg-query -S "${path#/usr}" 2>/dev/null ||
		    dpkg-query -S "$(readlink -f "$path")"
	done | cut -d: -f1 | sort -u | sed "s/^libc6$/& (>= $(libc_version))/" |
	    paste -sd, | sed 's/,/, /g'
}

libc_version() {
	ldd --version | sed -n '1s/.* //p'
}

copyright() {
	cat <<-'END'
	Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/
	Upstream-Name: muster

	Files: *
	END
	sed -n 's/^Copyright (c) /Copyright: /p' LICENSE
	echo "License: ISC"
	sed -n '/^Permission/,$ { s/^$/./; s/^/ /; p }' LICENSE
}

changelog() {
	printf 'muster (%s) unstable; urgency=medium\n\n  * Release %s.\n\n' \
	    "$version" "$version"
	printf ' -- muster maintainers <%s>  %s\n' "$maintainer" \
	    "$(LC_ALL=C date -R -d "@$epoch")"
}

maintainer=$(git log -1 --format=%ae 2>/dev/null || echo root@localhost)
rm -rf "$root"
umask 022
mkdir -p "$root/DEBIAN" "$root/usr/share/doc/muster"
B=build/release VERSION=$version DESTDIR=$root PREFIX=/usr packaging/install.sh
mkdir -p "$root/lib"
mv "$root/usr/lib/systemd" "$root/lib/systemd"
rmdir "$root/usr/lib"
strip --strip-unneeded --remove-section=.comment "$root"/usr/sbin/* "$root"/usr/bin/*
find "$root/usr/share/man" -type f -exec gzip -9n {} +
copyright >"$root/usr/share/doc/muster/copyright"
changelog | gzip -9n >"$root/usr/share/doc/muster/changelog.gz"
install -m 644 README.md docs/architecture.md "$root/usr/share/doc/muster/"
install -m 755 packaging/{postinst,prerm,postrm} "$root/DEBIAN/"

cat >"$root/DEBIAN/control" <<END
Package: muster
Version: $version
Architecture: $arch
Maintainer: muster maintainers <$maintainer>
Installed-Size: $(du -k -s --exclude=DEBIAN "$root" | cut -f1)
Depends: $(library_depends)
Section: admin
Priority: optional
Description: cluster toolkit for web hosters
 Three small programs with one registry: proxyd, a front proxy and load
 balancer for HTTP, TLS and MySQL; nodeagent, which obeys authenticated
 orders on every machine; and clusterctl, the one tool that enrolls nodes,
 runs commands on them by role, and shows and changes everything.
END
(cd "$root" && find usr lib -type f -print0 | sort -z |
    xargs -0 md5sum) >"$root/DEBIAN/md5sums"
find "$root" -newermt "@$epoch" -print0 |
    xargs -0r touch --no-dereference --date="@$epoch"
dpkg-deb --root-owner-group --build "$root" "$package" >/dev/null
echo "$package"
