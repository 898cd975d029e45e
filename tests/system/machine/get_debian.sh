#!/bin/sh
# Make the small Debian that `make test-systemd` boots: once, below .cache/machine, with debootstrap
# from the mirror that this machine's own apt uses. With root, missing programs are installed.
set -eu
cd "$(dirname "$0")/../../.."

release=bookworm
tree=.cache/machine/$release
packages=systemd,systemd-sysv,dbus,python3,python3-venv,python3-apt,python3-packaging,util-linux,iproute2,sudo
packages=$packages,procps,redis-server,postgresql-15

cannot() {
    echo "cannot make a Debian to boot: $1" >&2
    exit 1
}

missing=
command -v systemd-nspawn >/dev/null || missing="$missing systemd-container"
command -v debootstrap >/dev/null || missing="$missing debootstrap"
if [ -n "$missing" ]; then
    command -v apt-get >/dev/null || cannot "install$missing first"
    apt-get update -q
    # shellcheck disable=SC2086  # a word each
    DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends $missing
fi
[ ! -d "$tree" ] || [ "$(cat "$tree.packages")" != "$packages" ] || exit 0

# shellcheck disable=SC2016  # $(REPO_URI) is for apt-get
mirror=$(apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' "Codename: $release" | head -n 1)
[ -n "$mirror" ] || cannot "this machine's apt has no source of $release"
echo "making a Debian $release to boot: this takes a minute or two, once"
rm -rf "$tree" "$tree.part"
mkdir -p "$tree.part"
log=.cache/machine/debootstrap.log
debootstrap --variant=minbase --include="$packages" "$release" "$tree.part" "$mirror" >"$log" 2>&1 ||
    cannot "see $log"
rm -rf "$tree.part"/var/cache/apt/archives/*.deb "$tree.part"/var/lib/apt/lists/*
# Most tests have no use for the databases, so a test that needs one starts it.
systemctl --root="$tree.part" disable --quiet redis-server postgresql
echo "$packages" >"$tree.packages"
mv "$tree.part" "$tree"
