"""``events``: what happened on this node, from the daemon or, while none runs, from the file that it left."""

import argparse
import json
import os
import time
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

from supervisor.cli.daemon_commands import no_such_item, readable_config, socket_path
from supervisor.cli.exit_codes import DONE
from supervisor.cli.terminal import fail

Event = Mapping[str, Any]

ANSWER_S = 1.0  # for the file system of state_dir; one that works answers in milliseconds


def events(options: argparse.Namespace) -> int:
    """Print the events of this node, the newest last, and return the exit code."""
    from supervisor.cli.display.event_lines import lines
    from supervisor.control import fetch

    path = socket_path(options.socket, options.config)
    try:
        document = fetch.events(path)
    except fetch.DaemonUnreachable as error:
        document = _from_file(options, error)
    else:
        if options.name is not None and not any(_is_of(options.name, each) for each in document["events"]):
            status = fetch.status(path)[1]
            if options.name not in (item["name"] for item in status["items"]):
                return no_such_item(options.name, status)
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
    from supervisor.config import state_dir_without_file, state_dirs_of
    from supervisor.control.fetch import EVENTS_VERSION, DaemonUnreachable
    from supervisor.filesystem.reading import await_answer
    from supervisor.journal import identity_here
    from supervisor.journal.event_file import events_of, lines_in

    if options.socket is not None and options.config is None:
        raise unreachable
    config = readable_config(options.config)
    if config is None:
        folders: tuple[str, ...] = (state_dir_without_file(os.environ),)
    else:
        folders = state_dirs_of(config, os.environ)
    for folder in folders:
        try:
            await_answer(folder, ANSWER_S)
            found = [each for each in events_of(lines_in(folder), identity_here().machine) if each]
        except OSError as error:
            why = f"cannot read the events in {folder}: {error.strerror}"
            raise DaemonUnreachable(f"{unreachable}; {why}") from None
        if found:
            fail(DONE, f"{unreachable}; these events are those that it left in {folder}")
            return {"version": EVENTS_VERSION, "events": found}
    raise unreachable
