"""What is reported of a running daemon. Nothing here decides anything.

    log/        structured lines; repeated failures are reported once
    metrics/    Prometheus: items, hooks, Consul and the process
    history.py  the last transitions of each item since this process began, bounded
    status.py   whether this node holds, whether all is well, and the whole status as JSON
    stuck.py    the words about a stuck item: which hook failed, and the command to give
    systemd.py  readiness, status line and watchdog pings for systemd

No line, metric or status may carry a secret, and nothing here waits for its reader.
"""
