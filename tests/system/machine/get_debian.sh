#!/bin/sh
# Make the small Debians that `make test-systemd` boots: once, below .cache/machine, with mmdebstrap
# from the mirror that this machine's own apt uses. With root, missing programs are installed.
#
# bookworm has the applications of the tests. trixie is bare. Each has, beside its tree, the packages that
# consul-supervisor's own package needs, as a folder from which apt installs without a network.
#
# `get_debian.sh pacemaker` makes instead the Debian 12 of `python -m bench pacemaker`.
set -eu
cd "$(dirname "$0")/../../.."

booted=systemd,systemd-sysv,dbus,iproute2
bookworm=$booted,python3,python3-venv,python3-apt,python3-packaging,util-linux,sudo,procps,redis-server,postgresql-15
pacemaker=$booted,python3,python3-venv,procps,corosync,pacemaker,pacemaker-cli-utils
# The requirements of debian/control that Debian has packages of, and of Ansible's module for apt.
needed="$(sed -n 's/^ \(python3[a-z0-9-]*\).*/\1/p' debian/control | tr '\n' ' ') python3-apt"

cannot() {
    echo "cannot make a Debian to boot: $1" >&2
    exit 1
}

tests/setup/have_packages.sh "these tests" <<END
/usr/bin/systemd-nspawn systemd-container
/usr/bin/mmdebstrap mmdebstrap
/usr/bin/dpkg-scanpackages dpkg-dev
END

# make TREE RELEASE PACKAGES: make a tree of that release, unless it is there.
make() {
    release=$2 packages=$3
    tree=.cache/machine/$1
    made_of="$packages $needed"
    [ ! -d "$tree" ] || [ "$(cat "$tree.packages")" != "$made_of" ] || return 0

    echo "making a Debian $release to boot: this takes a minute or two, once"
    rm -rf "$tree" "$tree.part"
    mkdir -p "$tree.part"
    log=.cache/machine/$1.log
    mmdebstrap --variant=minbase --dpkgopt=force-unsafe-io --skip=cleanup/apt --include="$packages" \
        "$release" "$tree.part" "$mirror" >"$log" 2>&1 ||
        cannot "see $log"
    # Most tests have no use for the databases, so a test that needs one starts it.
    systemctl --root="$tree.part" disable --quiet redis-server postgresql 2>>"$log" || true
    systemctl --root="$tree.part" disable --quiet corosync pacemaker 2>>"$log" || true
    rm -f "$tree.part"/var/cache/apt/archives/*.deb
    # shellcheck disable=SC2086  # a word each
    chroot "$tree.part" apt-get install -y -q --no-install-recommends --download-only python3 $needed >>"$log" 2>&1 ||
        cannot "see $log"
    mkdir "$tree.part/var/local/packages"
    mv "$tree.part"/var/cache/apt/archives/*.deb "$tree.part/var/local/packages"
    (cd "$tree.part/var/local/packages" && dpkg-scanpackages --multiversion . >Packages 2>/dev/null)
    echo "deb [trusted=yes] file:/var/local/packages ./" >"$tree.part/etc/apt/sources.list"
    rm -rf "$tree.part"/var/lib/apt/lists/*
    echo "$made_of" >"$tree.packages"
    mv "$tree.part" "$tree"
}

# shellcheck disable=SC2016  # $(REPO_URI) is for apt-get
mirror=$(apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' 'Codename: bookworm' | head -n 1)
[ -n "$mirror" ] || cannot "this machine's apt has no source of Debian 12"
if [ "${1:-}" = pacemaker ]; then
    make pacemaker bookworm "$pacemaker"
else
    make bookworm bookworm "$bookworm"
    make trixie trixie "$booted"
fi
