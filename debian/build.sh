#!/bin/sh
# Build the Debian package in a copy of this tree, and put it into dist/. Nothing is installed.
set -eu
cd "$(dirname "$0")/.."

missing=
for requirement in dpkg-buildpackage:dpkg-dev dh:debhelper dh_python3:dh-python; do
    command -v "${requirement%:*}" >/dev/null || missing="$missing ${requirement#*:}"
done
if [ -n "$missing" ]; then
    echo "cannot build the package: \`apt install --no-install-recommends$missing\` brings what is missing." >&2
    exit 1
fi

python=${PYTHON:-.venv/bin/python}
SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct 2>/dev/null || date +%s)}
export SOURCE_DATE_EPOCH
built=$("$python" -m hatchling version)
version=$(echo "$built" | sed -E -f debian/version.sed)-1

build=$(mktemp -d)
trap 'rm -rf "$build"' EXIT
tree=$build/consul-supervisor
mkdir "$tree"
cp -R LICENSE README.md CHANGELOG.md debian docs examples schemas supervisor systemd "$tree"
find "$tree" -name __pycache__ -prune -exec rm -rf {} +
printf '"""The version of this build."""\n\n__version__ = "%s"\n' "$built" >"$tree/supervisor/_version.py"
repository=$(sed -n 's/^repository = "\(.*\)"$/\1/p' pyproject.toml)
sed -i "/^Standards-Version:/a Homepage: $repository" "$tree/debian/control"
# Whatever stands below generated/ goes into the package with this path: man pages, completions.
mkdir -p "$tree/generated/usr"
PYTHONDONTWRITEBYTECODE=1 "$python" -m docs.package_data "$tree/generated/usr/share"

cat >"$tree/debian/changelog" <<END
consul-supervisor ($version) unstable; urgency=medium

  * The changes of this version are in changelog.gz in this folder.

 -- $(sed -n 's/^Maintainer: //p' debian/control)  $(date -u -R -d "@$SOURCE_DATE_EPOCH")
END

if ! (cd "$tree" && dpkg-buildpackage --build=binary --no-sign >"$build/log" 2>&1); then
    cat "$build/log" >&2
    exit 1
fi
mkdir -p dist
rm -f dist/consul-supervisor_*.deb
mv "$build/consul-supervisor_${version}_all.deb" dist
echo "dist/consul-supervisor_${version}_all.deb"
