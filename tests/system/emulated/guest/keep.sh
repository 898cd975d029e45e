#!/bin/sh
# Keep the supervisor alive as systemd does with Restart=on-failure and RestartSec=1s: it starts a dead one again, and
# does not see that one is frozen.
export RUNTIME_DIRECTORY=/run/consul-supervisor STATE_DIRECTORY=/state
mkdir -p "$RUNTIME_DIRECTORY"
until consul-supervisor run /etc/supervisor.yaml & echo $! >/run/supervisor.pid; wait $!; do
    sleep 1
done
echo 'the supervisor has stopped'
