#!/bin/sh
# have_packages.sh WHAT: install programs of Debian's packages. Standard input has a line for each: the
# program that a package brings, then the package. Without root a missing package is reported with its remedy.
set -eu
what=$1
cache=$(dirname "$0")/../../.cache
mkdir -p "$cache"
exec 8>"$cache/apt.lock"
flock 8 # apt has one lock, and another target may be installing

missing=$(while read -r program package; do
    [ -z "$program" ] || [ -x "$program" ] || printf ' %s' "$package"
done)
[ -n "$missing" ] || exit 0
if [ "$(id -u)" != 0 ] || ! command -v apt-get >/dev/null; then
    echo "cannot run $what: packages of Debian are missing; \`apt install --no-install-recommends$missing\` brings them." >&2
    exit 1
fi
# Services that begin on installation would take ports on this machine, and the tests need only the programs.
policy=/usr/sbin/policy-rc.d
made=
if [ ! -e "$policy" ]; then
    printf '#!/bin/sh\nexit 101\n' >"$policy"
    chmod 755 "$policy"
    made=yes
fi
trap '[ -z "$made" ] || rm -f "$policy"' EXIT
apt-get update -q
# shellcheck disable=SC2086  # a word each
DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends $missing
