#!/bin/sh
# A hook that writes a line to $RECORDS when it begins and another when it ends, and runs $1 in between.
# Each line is one write to a file opened for appending, so the order of the lines of all nodes is the
# order of the writes. The first field of /proc/uptime is CLOCK_BOOTTIME. A hook that TERM ends leaves no
# second line.
record() {
    read -r at _ < /proc/uptime
    printf '%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n' "$1" "$2" "$at" "$NODE" "$HOOK" \
        "$CONSUL_SUPERVISOR_NAME" "$CONSUL_SUPERVISOR_EVENT" "$CONSUL_SUPERVISOR_REASON" \
        "$CONSUL_SUPERVISOR_SESSION" "$CONSUL_SUPERVISOR_FENCING_TOKEN" "$CONSUL_SUPERVISOR_LOCK_INDEX" \
        "$CONSUL_SUPERVISOR_LEADER" "$CONSUL_SUPERVISOR_PREVIOUS_LEADER" "$CONSUL_SUPERVISOR_TRANSITION" \
        "$CONSUL_SUPERVISOR_ATTEMPT" "${CONSUL_SUPERVISOR_TIME_LEFT:-}" \
        "$CONSUL_SUPERVISOR_KIND" "$CONSUL_SUPERVISOR_KEY" "$CONSUL_SUPERVISOR_HOLDERS" \
        "${CONSUL_SUPERVISOR_SLOT-}" >> "$RECORDS"
}
trap 'record end "$?"' EXIT
record begin ''
eval "$1"
