"""The events of a node for a person: one line for each event, the newest last.

The functions are pure. They rely on no value in an event, because hooks and operators write texts into them.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from supervisor.commands.cli.display.text import escape, pad, width
from supervisor.reporting.telemetry.names import SENTENCES, sentence

Event = Mapping[str, Any]

GAP = "  "
NO_ITEM = "-"


def lines(events: Sequence[Event]) -> list[str]:
    items = [escape(str(event.get("item", NO_ITEM))) for event in events]
    widest = max(map(width, items), default=0)
    return [
        GAP.join((escape(str(event.get("time", ""))), pad(item, widest), escape(text_of(event))))
        for event, item in zip(events, items, strict=True)
    ]


def text_of(event: Event) -> str:
    """Return the sentence of the journal, without the item, with the fencing token of a role."""
    name = event.get("event")
    if name not in SENTENCES:
        return str(name)
    said = sentence(name, event).removeprefix(f"{event.get('item', NO_ITEM)}: ")
    return f"{said}, token {event['token']}" if name == "role" and event.get("token") else said
