#!/bin/sh
# Make or refresh .venv with everything that the tests need; quick when nothing has changed.
# PYTHON names the interpreter; without it the first suitable one on PATH is taken. VENV names another folder.
set -eu
cd "$(dirname "$0")/../.."
venv=${VENV:-.venv}

fail() {
    echo "cannot set up the tests: $1" >&2
    exit 1
}

suitable() {
    "$1" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null
}

identity() {
    "$1" -c 'import os, sys; print(os.path.realpath(sys._base_executable), sys.version)' 2>/dev/null
}

if [ -n "${PYTHON:-}" ]; then
    suitable "$PYTHON" || fail "PYTHON=$PYTHON is no Python of at least 3.11."
    python=$PYTHON
else
    python=
    for candidate in python3 python3.14 python3.13 python3.12 python3.11; do
        if suitable "$candidate"; then
            python=$candidate
            break
        fi
    done
    [ -n "$python" ] || fail "no Python of at least 3.11 on PATH; \`apt install python3 python3-venv\` brings one \
on Debian 12, Ubuntu 24.04 and later, PYTHON=/path/to/python3 names one elsewhere."
fi

mkdir -p .cache
exec 9>.cache/setup.lock
flock 9 # another run in this folder may be doing the same

stamp=$venv/made-from
now="$(identity "$python")
$(cksum pyproject.toml tests/setup/make_venv.sh)"
if [ -x "$venv/bin/python" ] && [ "$(cat "$stamp" 2>/dev/null)" = "$now" ]; then
    exit 0
fi

if ! "$python" -c 'import ensurepip, venv' 2>/dev/null; then
    version=$("$python" -c 'import sys; print("%d.%d" % sys.version_info[:2])')
    fail "$python cannot make a virtual environment; \`apt install python$version-venv\` adds what is missing."
fi
if [ "$(identity "$venv/bin/python" || true)" != "$(identity "$python")" ]; then
    echo "making $venv with $("$python" --version)"
    "$python" -m venv --clear "$venv" || fail "$python could not make $venv (see above)."
fi
echo "installing what the tests need into $venv"
"$venv/bin/python" -m pip install --quiet --disable-pip-version-check --editable '.[dev]' ||
    fail "pip could not install what pyproject.toml names (see above); it needs a package index: check the network, \
the proxy variables or pip's configuration."
# pip compiles the packages that it installs, but not those that it only links to. Without this, each start may
# compile them again.
"$venv/bin/python" -m compileall -q supervisor
printf '%s\n' "$now" >"$stamp"
