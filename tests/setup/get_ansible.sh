#!/bin/sh
# Install Ansible and its linter in a venv below .cache, from the index that pip is set up for. The other tests do
# not need their hundred packages.
set -eu
cd "$(dirname "$0")/../.."
wanted="ansible-core>=2.16 ansible-lint>=24"
venv=.cache/ansible
if [ -e "$venv/home" ] && [ "$(cat "$venv/made-of" 2>/dev/null)" = "$wanted" ]; then
    exit 0
fi
rm -rf "$venv"
.venv/bin/python -m venv "$venv"
# shellcheck disable=SC2086  # a word each
"$venv/bin/python" -m pip install --quiet --disable-pip-version-check $wanted || {
    echo "cannot install Ansible (see above): pip needs a package index" >&2
    exit 1
}
# ansible-test makes a venv for each of its tests, and would download what installs pip there. The pip of this venv will do.
site=$("$venv/bin/python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')
version=$(sed -n "s/.* pip='\([0-9.]*\)'.*/\1/p" "$site/ansible_test/_internal/python_requirements.py" | tr . _)
cache=$venv/home/.ansible/test/cache
mkdir -p "$cache"
cat >"$cache/get_pip_$version.py" <<END
import os, sysconfig
os.symlink("$site/pip", sysconfig.get_path("purelib") + "/pip")
END
echo "$wanted" >"$venv/made-of"
