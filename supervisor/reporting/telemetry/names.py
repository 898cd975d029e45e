"""The levels and the names of the log's lines.

The names are a contract with programs that filter, count or alert on them. Each name is a row of docs/logs.md
with its level and fields. A name is never used for something else. A new kind of line is a new name here, a
new row there and a new sentence in sentences.py.
"""

from typing import Literal

Level = Literal["debug", "info", "warning", "error"]
PRIORITIES: dict[Level, int] = {"error": 3, "warning": 4, "info": 6, "debug": 7}  # those of syslog(3)

Name = Literal[
    # this process
    "started",
    "stopping",
    "interrupted",
    "stopped",
    "finished-stuck",
    "configuration",
    "reloaded",
    "reload-refused",
    "command-received",
    "command",
    "control-socket",
    "http",
    "systemd",
    "presence",
    "token-file",
    "token-renewed",
    "tls-files",
    "event-loop-stalled",
    "watchdog",
    "machine-reset",
    "bug",
    # this node's part in an election or semaphore
    "role",
    "pause-over",
    "ordered",
    "order-over",
    "leader-changed",
    "notice",
    "notice-over",
    "hook-cannot-start",
    "hooks-can-start",
    "look-failed",
    "not-eligible",
    # hooks and children
    "hook-started",
    "hook-delayed",
    "hook-succeeded",
    "hook-failed",
    "hook-killed",
    "hook-output",
    "hook-output-dropped",
    "run-started",
    "run-stopping",
    "run-ended",
    "check-failed",
    "check-recovered",
    # Consul
    "consul-silent",
    "consul-fails",
    "consul-drops",
    "consul-throttled",
    "consul-denied",
    "consul-refused",
    "session-altered",
    "consul-answers",
    "request",
    "exchange-failed",
    "acquire-refused",
    "releasing",
    "destroying",
    # records
    "recorded",
    "recorded-elsewhere",
    "journal-unreadable",
    "journal-failed",
    "journal-recovered",
    "copies-failed",
    "copies-recovered",
    "events-failed",
    "events-recovered",
    "history-failed",
    "history-recovered",
    "orders-failed",
    "orders-recovered",
    "leftover-process",
    # the log itself
    "log-lines-dropped",
]
