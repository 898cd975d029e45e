"""The levels and the names of the log's lines, and a sentence for each, which journal and ``events`` show.

The names are a contract with programs that filter, count or alert on them. Each name is a row of docs/logs.md
with its level and fields, and is never used for something else. Programs use the fields of a line and not its
sentence, because a later release may word that better.

A sentence names the item first, then the event, then its reason and the remedy. In a template ``{field}`` is
the value of that field. ``[text]`` is left out if the line lacks a field in it, and ``[text|other]`` is
``other`` then.
"""

import re
from collections.abc import Mapping
from typing import Any, Literal

Level = Literal["debug", "info", "warning", "error"]
PRIORITIES: dict[Level, int] = {"error": 3, "warning": 4, "info": 6, "debug": 7}  # those of syslog(3)

_FAILS = ": {why}[; for {lasts_s} s now][; {times_unsaid} times since the last line]"
_ENDED = "[ after {duration_s} s][, attempt {later_attempt}][: {detail}]"
_WORKS = " again[, after {duration_s} s]"
SENTENCES: dict[str, str] = {
    # this process
    "started": "Started[ version {version}]: takes part in {counted}",
    "stopping": "Stopping: {reason}",
    "interrupted": "Interrupted: {why}",
    "stopped": "Stopped {cleanly}",
    "finished-stuck": "{item}: stopped while it is stuck; {remedy}",
    "configuration": "Configuration: {why}",
    "reloaded": (
        "Read the configuration again[; the daemon: {process}][; changed: {changed}]"
        "[; restarted: {restarted}][; added: {added}][; removed: {removed}]"
    ),
    "reload-refused": "Refused the configuration: {why}",
    "command-received": (
        "[{item}: ]received {verb}[ --to {to}][ until {until}][ from {user}| from uid {uid}][: {note}]"
    ),
    "command": "[{item}: ]{verb}[ was refused: {why}| is done]",
    "control-socket": "Control socket: {why}",
    "http": "HTTP: {why}",
    "systemd": "systemd: {why}",
    "presence": "Consul's catalog [does not show this node as it is: {why}|shows this node again]",
    "token-file": "Token file: {why}",
    "token-renewed": "Token file: {why}",
    "tls-files": "TLS files: {why}",
    "event-loop-stalled": "The process or the machine stood still for {late_s} s",
    "watchdog": "[{item}: ]Watchdog {device} {state}[: resets this machine in {reset_in_s} s][: {why}]",
    "machine-reset": "The machine was reset while it held {item}, by its watchdog or a loss of power",
    "bug": "A bug of the supervisor: {what}[\n{trace}]",
    # this node's part in an election or semaphore
    "role": "{item}: {role}[ ({reason})][, was {former_role}][: {why}][: {note}][; {remedy}]",
    "pause-over": "{item}: its pause is over",
    "ordered": "{item}: {verb} was ordered by {user}[ until {until}][: {note}]",
    "order-over": "{item}: its pause everywhere is over",
    "leader-changed": "{item}: {to} leads[, after {from} since {since}]",
    "notice": "{item}: {why}",
    "notice-over": "{item}: the notice is over",
    "hook-cannot-start": "{item}: {hook} cannot start: {why}[; {remedy}][; {effect}]",
    "hooks-can-start": "{item}: all hooks can start again",
    "look-failed": "Cannot look whether hooks can start: {why}[; {remedy}]",
    "not-eligible": f"[{{items_named}}: ]not eligible[ ({{kinds}})]{_FAILS}",
    # hooks and children
    "hook-started": "{item}: {hook} started[ ({reason})][, attempt {later_attempt}]",
    "hook-delayed": "{item}: {hook} cannot start yet: {why}[; {remedy}]",
    "hook-succeeded": f"{{item}}: {{hook}} succeeded{_ENDED}",
    "hook-failed": f"{{item}}: {{hook}} failed{_ENDED}",
    "hook-killed": "{item}: {hook} was ended early[ ({reason})]",
    "hook-output": "{item}: {hook} wrote: {text}",
    "hook-output-dropped": "Dropped {count} lines that hooks wrote",
    "run-started": "{item}: run started",
    "run-stopping": "{item}: run is being ended",
    "run-ended": "{item}: run ended[ after {duration_s} s][: {detail}]",
    "check-failed": f"[{{items_named}}: ]candidate_check failed{_FAILS}",
    "check-recovered": f"[{{items_named}}: ]candidate_check succeeds{_WORKS}",
    # Consul
    "consul-silent": f"[{{items_named}}: ]Consul does not answer[ ({{kinds}})]{_FAILS}",
    "consul-fails": f"[{{items_named}}: ]Consul answers with an error[ ({{kinds}})]{_FAILS}",
    "consul-drops": f"[{{items_named}}: ]Consul's agents drop writes[ ({{kinds}})]{_FAILS}",
    "consul-throttled": f"[{{items_named}}: ]a rate limit of Consul refuses requests[ ({{kinds}})]{_FAILS}",
    "consul-denied": f"[{{items_named}}: ]Consul refuses the token[ ({{kinds}})]{_FAILS}",
    "consul-refused": f"[{{items_named}}: ]Consul refuses the session[ ({{kinds}})]{_FAILS}",
    "session-altered": f"[{{items_named}}: ]Consul has another session than requested[ ({{kinds}})]{_FAILS}",
    "consul-answers": f"[{{items_named}}: ]Consul answers{_WORKS}[ ({{after}})]",
    "outage": "[{items_named}: ]{why}[; for {lasts_s} s now]",
    "outage-over": "[{items_named}: ]no outage of Consul is ridden out any more[, after {duration_s} s]",
    "record-left": (
        "{item}: Consul does not answer, so the tenure record stays: once the session has ended there, others"
        " wait {waits_s} s, or switch this machine off; the next start here ends that"
    ),
    "request": "{item}: requests {kind}",
    "exchange-failed": "{item}: {kind} failed: {why}",
    "acquire-refused": "{item}: could not acquire: {reason}",
    "releasing": "{item}: releases the lock",
    "destroying": "{item}: ends its session",
    # records
    "recorded": "{item}: an earlier process left a record: {step}",
    "recorded-elsewhere": "{item}: {why}",
    "journal-unreadable": "{item}: its record cannot be read: {why}[; {remedy}]",
    "journal-failed": f"[{{items_named}}: ]the record cannot be written{_FAILS}",
    "journal-recovered": f"[{{items_named}}: ]records can be written{_WORKS}",
    "copies-failed": f"[{{items_named}}: ]records are in memory only{_FAILS}",
    "copies-recovered": f"[{{items_named}}: ]records are on disk{_WORKS}",
    "events-failed": f"[{{items_named}}: ]events are kept in memory only{_FAILS}",
    "events-recovered": f"[{{items_named}}: ]events can be written{_WORKS}",
    "history-failed": f"[{{items_named}}: ]the history in Consul cannot be written{_FAILS}",
    "history-recovered": f"[{{items_named}}: ]the history in Consul can be written{_WORKS}",
    "orders-failed": f"[{{items_named}}: ]orders for the whole fleet cannot be read{_FAILS}",
    "orders-recovered": f"[{{items_named}}: ]orders for the whole fleet can be read{_WORKS}",
    "leftover-process": "Left behind by a crash: {why}",
    # the log itself
    "log-lines-dropped": "Dropped {count} lines of the log",
}
_OPTIONAL = re.compile(r"\[([^][|]*)(?:\|([^][]*))?\]")
_FIELD = re.compile(r"\{(\w+)\}")


def sentence(event: str, fields: Mapping[str, Any]) -> str:
    """Return the sentence of a line, in which a value may still act on a terminal."""
    values = {name: ", ".join(texts(value)) for name, value in fields.items()} | _derived(fields)
    if fields.get("former_role") == fields.get("role"):  # its reason alone has changed
        values.pop("former_role", None)

    def chosen(optional: re.Match[str]) -> str:
        return optional[1] if values.keys() >= set(_FIELD.findall(optional[1])) else optional[2] or ""

    template = _OPTIONAL.sub(chosen, SENTENCES[event])
    return _FIELD.sub(lambda field: values.get(field[1], "-"), template)


def _derived(fields: Mapping[str, Any]) -> dict[str, str]:
    """Return what a sentence has instead of a field."""
    derived = {"cleanly": "in order" if fields.get("clean") else "and left something over"}
    if (number := fields.get("items")) is not None:
        derived["counted"] = (
            "1 election or semaphore" if number == 1 else f"{number} elections and semaphores"
        )
    if "item" in fields:
        derived["items_named"] = str(fields["item"])
    elif names := fields.get("names"):
        more = ", …" if fields["items"] > len(names) else ""
        derived["items_named"] = f"{', '.join(names)}{more}"
    if fields.get("attempt", 1) != 1:
        derived["later_attempt"] = str(fields["attempt"])
    return derived


def texts(value: Any) -> list[str]:
    """Return a value as text, and a list as one text for each of its values."""
    if isinstance(value, bool):
        return ["true" if value else "false"]
    return [str(each) for each in value] if isinstance(value, list) else [str(value)]
