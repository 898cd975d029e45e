"""The journal in the daemon's hands: what is read from it at the start, what goes into it, the log.

A hook's process group is on record while it runs, so that the next process can end what a crash
interrupted. Trouble with records is said in the log; what it means is the core's to decide.
"""

import random
import secrets
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from supervisor.config import Config, ConsulSettings, LogSettings
from supervisor.core.actions import Remember, StartHook, StartRun
from supervisor.journal import SUFFIX, Journal, Recorded, Unreadable
from supervisor.leftovers import Group, find_leftovers, kill_leftovers, started_at
from supervisor.log import Log
from supervisor.recovery import Origin, Start, start, transitions_of

KILL_WITHIN_S = 1.0  # the kernel ends a killed process in milliseconds, or not at all (state D)

Started = StartHook | StartRun


class Records:
    """Reads, writes and speaks of the journal of one configuration."""

    def __init__(self, config: Config, log: Log, wants_disk: Callable[[Path], None]) -> None:
        """Raises JournalError."""
        self._log = log
        self._elections = {settings.name: settings for settings in config.elections}
        self._journal = Journal(
            config.state_dir, config.consul, withheld=config.withheld, wants_disk=wants_disk
        )
        self._groups: dict[Started, Group] = {}

    def start(self, now: float) -> Start:
        """The elections to begin with, once nothing of a crashed process's hooks is left."""
        records = dict(self._journal.recorded())
        self._kill_leftovers(records)
        for name, record in records.items():
            if isinstance(record, Unreadable):
                known = name in self._elections
                remedy = "on_lose runs" if known else "see that nothing of it acts, then remove the file"
                self._log.line("error", "journal-unreadable", election=name, why=str(record), remedy=remedy)
            else:
                step = record.memory.step
                self._log.line("info", "recorded", election=name, step=step, session=record.memory.session)
        wanted = [(settings, random.random()) for settings in self._elections.values()]
        return start(wanted, records, Origin(secrets.token_hex(8), self._journal.identity, now))

    def _kill_leftovers(self, records: dict[str, Recorded | Unreadable]) -> None:
        """Only of this boot and machine: elsewhere the numbers are somebody else's."""
        for name, record in records.items():
            if not isinstance(record, Recorded) or record.identity != self._journal.identity:
                continue
            groups = (*record.groups, *find_leftovers(transitions_of(record.memory)))
            records[name] = replace(record, groups=groups)
            for trouble in kill_leftovers(groups, within_s=KILL_WITHIN_S) if groups else ():
                self._log.line("error", "leftover", election=name, why=trouble)

    def remember(self, remember: Remember) -> str:
        """Blank when the kernel has it, else why not."""
        why_not = self._journal.remember(remember)
        self._complain(remember.election, why_not)
        return why_not

    def group_began(self, started: Started, pgid: int) -> None:
        """On record until ``group_ended``."""
        context = started.context
        ticks = started_at(pgid)
        if ticks is None or context.event == "check":
            return
        group = self._groups[started] = Group(pgid, ticks, context.transition)
        self._complain(context.name, self._journal.group_began(context.name, group))

    def group_ended(self, started: Started) -> None:
        """Nothing of it is left."""
        group = self._groups.pop(started, None)
        if group is not None:
            self._complain(started.context.name, self._journal.group_ended(started.context.name, group))

    def _complain(self, election: str, why_not: str) -> None:
        if why_not:
            self._log.line("error", "journal", election=election, why=why_not)

    def close(self) -> None:
        """The records stay."""
        self._journal.close()


def config_of_records(directory: str) -> Config | None:
    """What is on record there, as a configuration without elections, by which it can be wound up.

    None when nothing is. For a file that cannot be loaded: that must not orphan what runs. Raises
    JournalError.
    """
    if not any(Path(directory).glob(f"*{SUFFIX}")):
        return None
    journal = Journal(directory, ConsulSettings(address=""))
    found = [record for _, record in journal.recorded() if isinstance(record, Recorded)]
    journal.close()
    if not found:
        return None
    withheld = frozenset(name for record in found for name in record.withheld)
    return Config(found[-1].consul, LogSettings(), (), directory, withheld=withheld)
