#!/bin/sh
# The application: it says ten times a second that it acts, on a port of its own, until it is killed. Hooks call this as `application start`
# and `application stop`, as they would call systemctl.
case $1 in
start)
    setsid application away # returns when the application has left the process group of the hook
    ;;
away)
    application "$CONSUL_SUPERVISOR_FENCING_TOKEN" </dev/null >/dev/ttyS1 2>&1 &
    echo $! >/run/application.pid
    ;;
stop)
    kill -9 "$(cat /run/application.pid)"
    ;;
*)
    while echo "I act with token $1"; do
        usleep 100000
    done
    ;;
esac
