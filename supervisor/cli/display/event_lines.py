"""The events of a node for a person: one line for each event, the newest last.

The functions are pure. They rely on no value in an event, because hooks and operators write texts into them.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from supervisor.cli.display.text import escape, pad, width

Event = Mapping[str, Any]

GAP = "  "
NO_ITEM = "-"


def lines(events: Sequence[Event]) -> list[str]:
    """Return a line for each event: its time, its item, what happened."""
    items = [escape(str(event.get("item", NO_ITEM))) for event in events]
    widest = max(map(width, items), default=0)
    return [
        GAP.join((escape(str(event.get("time", ""))), pad(item, widest), escape(text_of(event))))
        for event, item in zip(events, items, strict=True)
    ]


def text_of(event: Event) -> str:
    match event.get("event"):
        case "role":
            former = f"{event['former_role']} -> " if event.get("former_role") else "-> "
            return f"{former}{event.get('role')}" + _details(event, "reason", "note", "why") + _token(event)
        case "notice":
            return "notice" + _details(event, "why")
        case "hook-succeeded":
            return f"{_hook(event)} ok" + _took(event)
        case "hook-failed":
            return f"{_hook(event)} FAILED" + _took(event) + _details(event, "detail")
        case "run-ended":
            return "run ended" + _took(event) + _details(event, "detail")
        case "command-received":
            return f"{_command(event)} by {_who(event)}" + _details(event, "note")
        case "command":
            return f"{_command(event)} by {_who(event)} REFUSED" + _details(event, "why")
        case "stopped":
            return "supervisor stopped" + ("" if event.get("clean") else ", not clean")
        case "started":
            version = f", version {event['version']}" if event.get("version") else ""
            return f"supervisor started{version}, pid {event.get('pid')}"
        case "reloaded":
            return f"configuration read again: {event.get('what', 'nothing has changed')}"
        case "reload-refused":
            return "configuration REFUSED" + _details(event, "why")
        case "watchdog":
            return f"watchdog {event.get('device')} {event.get('state')}" + _details(event, "why")
        case other:
            return str(other)


def _details(event: Event, *names: str) -> str:
    found = [str(event[name]) for name in names if event.get(name)]
    return f" ({': '.join(found)})" if found else ""


def _token(event: Event) -> str:
    return f", token {event['token']}" if event.get("token") else ""


def _took(event: Event) -> str:
    took_s = event.get("duration_s")
    return f" {took_s:.3f}s" if isinstance(took_s, int | float) else ""


def _hook(event: Event) -> str:
    attempt = event.get("attempt", 1)
    return str(event.get("hook")) + (f" attempt {attempt}" if attempt != 1 else "")


def _command(event: Event) -> str:
    return str(event.get("verb")) + ("" if event.get("item") or event.get("verb") == "reload" else " --all")


def _who(event: Event) -> str:
    return str(event.get("user") or f"user id {event.get('uid')}")
