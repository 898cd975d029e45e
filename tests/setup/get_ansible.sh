#!/bin/sh
# Install Ansible and its linter in a venv below .cache, from the index that pip is set up for. The other tests do
# not need their hundred packages.
set -eu
cd "$(dirname "$0")/../.."
wanted="ansible-core>=2.16 ansible-lint>=24"
venv=.cache/ansible
if [ -x "$venv/bin/ansible-lint" ] && [ "$(cat "$venv/made-of" 2>/dev/null)" = "$wanted" ]; then
    exit 0
fi
rm -rf "$venv"
.venv/bin/python -m venv "$venv"
# shellcheck disable=SC2086  # a word each
"$venv/bin/python" -m pip install --quiet --disable-pip-version-check $wanted || {
    echo "cannot install Ansible (see above): pip needs a package index" >&2
    exit 1
}
echo "$wanted" >"$venv/made-of"
