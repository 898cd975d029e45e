"""Finds what a command can tell while no daemon answers: the last daemon's events, a fault of its file."""

import argparse
import os
from pathlib import Path
from typing import Any

from supervisor.commands.cli.commands import DEFAULT_CONFIG
from supervisor.commands.cli.exit_codes import DONE
from supervisor.commands.cli.terminal import fail

ANSWER_S = 1.0  # for the file system of state_dir; one that works answers in milliseconds


def readable_config(config: Path | None) -> Path | None:
    """Return the given configuration, or the default one.

    None: none is given, and the default is missing, or only root may read it.
    """
    unread = config is None and not os.access(DEFAULT_CONFIG, os.R_OK)
    return None if unread else config or DEFAULT_CONFIG


def only_socket_is_given(options: argparse.Namespace) -> bool:
    return options.socket is not None and options.config is None


def left_events(options: argparse.Namespace) -> tuple[str, list[dict[str, Any]]]:
    """Return the events that the last daemon of this configuration has left, and their folder.

    There are none when the socket alone says which daemon is meant. Raises OSError, whose strerror is a
    sentence.
    """
    from supervisor.adapters.filesystem.reading import await_answer
    from supervisor.adapters.journal import identity_here
    from supervisor.adapters.journal.copies import folder_of
    from supervisor.adapters.journal.event_file import events_of, lines_in
    from supervisor.config.control import control_socket
    from supervisor.config.loader import state_dir_without_file, state_dirs_of

    if only_socket_is_given(options):
        return "", []
    config = readable_config(options.config)
    usual = (state_dir_without_file(os.environ),)
    runtime = os.path.dirname(control_socket(None, os.environ)[0])
    for state_dir in usual if config is None else state_dirs_of(config, os.environ):
        memory = folder_of(runtime, state_dir)  # a daemon that was killed has left the newest events there
        folder = str(memory) if memory.is_dir() else state_dir
        try:
            await_answer(folder, ANSWER_S)
            if found := [each for each in events_of(lines_in(folder), identity_here().machine) if each]:
                return folder, found
        except OSError as error:
            raise OSError(error.errno, f"cannot read the events in {folder}: {error.strerror}") from None
    return "", []


def say_why_it_ended(options: argparse.Namespace) -> None:
    """Print on standard error the last event of the former daemon, and a fault of its configuration.

    Print nothing when the socket alone says which daemon is meant.
    """
    if only_socket_is_given(options):
        return
    import socket

    from supervisor.commands.cli.display.event_lines import lines
    from supervisor.config import ConfigError, load
    from supervisor.config.environment import EVERY_ITEM

    try:
        folder, found = left_events(options)
    except OSError as error:
        fail(DONE, str(error.strerror))
    else:
        for line in lines(found[-1:]):
            fail(DONE, f"the last event that it left in {folder}: {line.strip()}")
    config = readable_config(options.config)
    if config is None:
        return
    try:
        load(config, os.environ, socket.gethostname(), asked=EVERY_ITEM)
    except ConfigError as error:
        fail(DONE, f"its configuration cannot be used: {error.in_short}")
