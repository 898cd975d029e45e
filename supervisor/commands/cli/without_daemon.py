"""Finds what a command can tell while no daemon answers: the last daemon's events."""

import argparse
import os
from typing import Any

from supervisor.commands.cli.exit_codes import DONE
from supervisor.commands.cli.terminal import fail

ANSWER_S = 1.0  # for the file system of state_dir; one that works answers in milliseconds


def only_socket_is_given(options: argparse.Namespace) -> bool:
    return options.socket is not None and options.config is None


def left_events(options: argparse.Namespace) -> tuple[str, list[dict[str, Any]]]:
    """Return the events that the last daemon has left, and their folder: that of --config, or the usual one.

    There are none when the socket alone says which daemon is meant. Raises OSError, whose strerror is a
    sentence.
    """
    if only_socket_is_given(options):
        return "", []
    from supervisor.adapters.filesystem.reading import await_answer
    from supervisor.adapters.journal import identity_here
    from supervisor.adapters.journal.copies import folder_of
    from supervisor.adapters.journal.event_file import events_of, lines_in
    from supervisor.config.places import usual_socket, usual_state_dir

    folders: tuple[str, ...] = (usual_state_dir(os.environ),)
    if options.config is not None:
        from supervisor.config.loader import state_dirs_of

        folders = state_dirs_of(options.config, os.environ)
    runtime = os.path.dirname(usual_socket(os.environ))
    for state_dir in folders:
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
    """Print on standard error the last event of the former daemon, if it has left one."""
    from supervisor.commands.cli.display.event_lines import lines

    try:
        folder, found = left_events(options)
    except OSError as error:
        fail(DONE, str(error.strerror))
        return
    for line in lines(found[-1:]):
        fail(DONE, f"the last event that it left in {folder}: {line.strip()}")
