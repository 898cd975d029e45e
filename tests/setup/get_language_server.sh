#!/bin/sh
# Install the requirements of tests/system/editors: git and node of Debian's packages, and the language server that
# editors use for YAML, from the registry that npm is set up for.
set -eu
cd "$(dirname "$0")/../.."
version=1.25.0 # 2.0 wants a newer node than Debian 12 has

tests/setup/have_packages.sh "these tests" <<END
/usr/bin/git git
/usr/bin/node nodejs
/usr/bin/npm npm
END

mkdir -p .cache
exec 9>.cache/language-server.lock
flock 9 # another run in this folder may be doing the same

folder=.cache/language-server
[ "$(cat "$folder/version" 2>/dev/null)" != "$version" ] || exit 0
rm -rf "$folder"
mkdir "$folder"
npm install --prefix "$folder" --no-audit --no-fund --ignore-scripts --loglevel error "yaml-language-server@$version" || {
    echo "cannot get yaml-language-server $version (see above): npm needs a registry: check the network, the proxy \
variables or npm's configuration." >&2
    exit 1
}
echo "$version" >"$folder/version"
