#!/bin/sh
# Make .cache/image-base/rootfs.tar, once: a small Debian with Python, from the mirror that this machine's own apt uses.
# In tests it is the base of the image in examples/container, because no registry is asked. Needs root.
set -eu
cd "$(dirname "$0")/../.."
base=.cache/image-base

tests/setup/have_packages.sh "the tests of the image" <<END
/usr/bin/buildah buildah
/usr/bin/mmdebstrap mmdebstrap
END

[ ! -e $base/rootfs.tar ] || exit 0
echo "making a Debian for the image: this takes a minute or two, once"
rm -rf $base
mkdir -p $base
# shellcheck disable=SC2016  # $(REPO_URI) is for apt-get
mirror=$(apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' 'Codename: bookworm' | head -n 1)
cannot() {
    echo "cannot make a Debian for the image: $1" >&2
    exit 1
}
[ -n "$mirror" ] || cannot "this machine's apt has no source of Debian 12"
mmdebstrap --variant=minbase --dpkgopt=force-unsafe-io --include=python3 trixie $base/tree "$mirror" >$base/log 2>&1 ||
    cannot "see $base/log"
tar -C $base/tree --exclude=./dev --exclude=./var/cache/apt --exclude=./var/lib/apt/lists -cf $base/rootfs.part .
mv $base/rootfs.part $base/rootfs.tar
rm -rf $base/tree
