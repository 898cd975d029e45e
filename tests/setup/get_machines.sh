#!/bin/sh
# Get what `make test-watchdog` boots: qemu and busybox of Debian's packages, and below .cache/watchdog the parts of
# Debian's kernel that its machines need. The cloud kernel will not do, because it has no watchdog device.
set -eu
cd "$(dirname "$0")/../.."

tests/setup/have_packages.sh "these tests" <<END
/usr/bin/qemu-system-x86_64 qemu-system-x86
/bin/busybox busybox-static
/usr/bin/cpio cpio
/usr/sbin/mkfs.ext4 e2fsprogs
END

cannot() {
    echo "cannot get a kernel for the machines: $1" >&2
    exit 1
}

mkdir -p .cache/watchdog
exec 9>.cache/watchdog/lock
flock 9 # another run in this folder may be doing the same

folder=.cache/watchdog/kernel
[ ! -d "$folder" ] || exit 0
rm -rf "$folder.part"
mkdir "$folder.part"
cd "$folder.part"
[ "$(id -u)" != 0 ] || flock ../../apt.lock apt-get update -q
package=$(apt-cache depends linux-image-amd64 | sed -n 's/^ *Depends: //p')
[ -n "$package" ] || cannot "apt knows no linux-image-amd64; it needs a source of Debian"
apt-get download -q "$package" || cannot "see above: apt needs a mirror"
dpkg-deb --fsys-tarfile ./*.deb | tar -x --wildcards --transform 's,.*/,,' './boot/vmlinuz-*' \
    '*/watchdog.ko*' '*/i6300esb.ko*' '*/softdog.ko*' '*/e1000.ko*' '*/loop.ko*' \
    '*/crc32c_generic.ko*' '*/libcrc32c.ko*' '*/crc16.ko*' '*/mbcache.ko*' '*/jbd2.ko*' '*/ext4.ko*'
rm ./*.deb
mv vmlinuz-* vmlinuz
for module in *.ko.xz; do # as from Debian 13 on
    [ ! -e "$module" ] || xz -d "$module"
done
cd - >/dev/null
mv "$folder.part" "$folder"
