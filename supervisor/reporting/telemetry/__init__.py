"""The reports of a running daemon. Nothing here decides anything.

    names.py         the levels of lines, their names, which are a contract, and a sentence for each name
    facts.py         what a step means to people: roles, hooks, failures; log, history and metrics present it
    log/             structured lines; a recurring failure has one line for its begin and one for its end
    metrics/         Prometheus: items, hooks, Consul and the process
    history.py       the histories of all items, bounded, also from events of earlier processes
    event_log.py     the events of this node: its tenures and commands, bounded
    leaders.py       who leads each election and who led before, as far as this node has seen it
    fleet.py         what the fleet reports, and its warnings
    item_history.py  the history of one item: transitions, hooks, the last error
    status.py        whether this node holds, whether all is well, and the whole status as JSON
    item_warnings.py the warnings about one item
    formatting.py    times and texts as people read them
    systemd.py       readiness, status line and watchdog pings for systemd

No line, metric or status may carry a secret, and nothing here waits for its reader.
"""
