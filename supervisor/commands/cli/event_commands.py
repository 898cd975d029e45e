"""``events``: what happened on this node, from the daemon or, while none runs, from the file that it left."""

import argparse
import json
import time
from collections.abc import Iterable
from datetime import datetime
from typing import Any

from supervisor.commands.cli.daemon_commands import no_such_item, socket_path
from supervisor.commands.cli.display.event_lines import Event, lines
from supervisor.commands.cli.exit_codes import DONE
from supervisor.commands.cli.terminal import fail
from supervisor.commands.cli.without_daemon import left_events
from supervisor.reporting.control import fetch


def events(options: argparse.Namespace) -> int:
    path = socket_path(options)
    try:
        document = fetch.events(path)
    except fetch.DaemonUnreachable as error:
        document = _from_file(options, error)
    else:
        if options.name is not None and not any(_is_of(options.name, each) for each in document["events"]):
            status = fetch.status(path)[1]
            if options.name not in (item["name"] for item in status["items"]):
                raise no_such_item(options.name, status)
    chosen = list(_chosen(document["events"], options))
    if options.json:
        print(json.dumps({**document, "events": chosen}))
        return DONE
    for line in lines(chosen):
        print(line)
    return DONE


def _chosen(found: Iterable[Event], options: argparse.Namespace) -> Iterable[Event]:
    from_s = None if options.since_s is None else time.time() - options.since_s
    for event in found:
        if options.name is not None and not _is_of(options.name, event):
            continue
        if from_s is None or datetime.fromisoformat(event["time"]).timestamp() >= from_s:
            yield event


def _is_of(name: str, event: Event) -> bool:
    """Return whether the event is about this item. A command for all items is."""
    for_all = event["event"] in ("command", "command-received") and event.get("verb") != "reload"
    return event.get("item") == name or (for_all and "item" not in event)


def _from_file(options: argparse.Namespace, unreachable: Exception) -> dict[str, Any]:
    """Return the events that the last daemon of this configuration has left.

    Raises DaemonUnreachable when there are none, or when the socket alone says which daemon is meant.
    """
    try:
        folder, found = left_events(options)
    except OSError as error:
        raise fetch.DaemonUnreachable(f"{unreachable}; {error.strerror}") from None
    if not found:
        raise unreachable
    fail(DONE, f"{unreachable}; these events are those that it left in {folder}")
    return {"version": fetch.VERSION, "events": found}
