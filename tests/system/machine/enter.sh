#!/bin/sh
# enter.sh [OPTION...] MACHINE COMMAND: stands in for Ansible's ssh. A file of the machine's name in $MACHINES holds
# the pid of its first process.
set -eu
while [ $# -gt 2 ]; do shift; done
exec nsenter --all --target="$(cat "$MACHINES/$1")" -- /usr/bin/env -i --chdir=/root HOME=/root LANG=C.UTF-8 \
    PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin /bin/sh -c "$2"
