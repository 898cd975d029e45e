#!/bin/sh
# on_acquire and on_lose of every node: one line to $EVENTS at the first instruction, one at the last.
# A line is one write to a file opened for appending, so its place tells the order among all nodes.
# The first field of /proc/uptime is CLOCK_BOOTTIME, cut to hundredths; the nodes share the host's clock.
line() {
    read -r at _ < /proc/uptime
    printf '%s %s %s %s %s %s\n' "$at" "$NODE" "$CONSUL_SUPERVISOR_EVENT-$1" \
        "$CONSUL_SUPERVISOR_SESSION" "$CONSUL_SUPERVISOR_FENCING_TOKEN" "$CONSUL_SUPERVISOR_REASON" >> "$EVENTS"
}
line begin
sleep 0.1
line end
