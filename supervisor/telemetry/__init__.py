"""The reports of a running daemon. Nothing here decides anything.

    log/             structured lines; a recurring failure has one line for its begin and one for its end
    metrics/         Prometheus: items, hooks, Consul and the process
    history.py       the histories of all items since this process began, bounded
    item_history.py  the history of one item: transitions, hooks, the last error
    status.py        whether this node holds, whether all is well, and the whole status as JSON
    stuck.py         texts about a stuck item: the hook that failed, and the command that an operator runs
    systemd.py       readiness, status line and watchdog pings for systemd

No line, metric or status may carry a secret, and nothing here waits for its reader.
"""
