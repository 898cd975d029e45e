"""The journal of the daemon: read at the start, written afterwards, and its failures in the log.

A hook's process group is on record while it runs, so that the next process can end a hook that a crash
interrupted. This module logs failures of the journal, and the core decides what follows from them.
"""

import asyncio
import secrets
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path

from supervisor.adapters.filesystem.children import NoAnswer
from supervisor.adapters.filesystem.reading import await_answer
from supervisor.adapters.hooks.abandoned import Group, find_abandoned, kill_abandoned, started_at
from supervisor.adapters.hooks.group import runs
from supervisor.adapters.journal import (
    START_WITHIN_S,
    Journal,
    MachineIdentity,
    Recorded,
    UnreadableRecord,
)
from supervisor.adapters.journal.copies import (
    ACCEPTED,
    KEPT,
    SUFFIX,
    Copies,
    JournalBusy,
    folder_of,
    newest,
)
from supervisor.config import Config, ConsulSettings, LogSettings
from supervisor.core.actions import LOSE_SIDE, Point, Reason, StartHook, StartRun, WriteRecord
from supervisor.core.settings import Wanted
from supervisor.daemon.restore import ProcessIdentity, Restored, marks_of, restore, transitions_of
from supervisor.reporting.telemetry.history import History
from supervisor.reporting.telemetry.log import Log

KILL_WITHIN_S = 1.0  # the kernel ends a killed process in milliseconds, or not at all (state D)

Started = StartHook | StartRun


class Records:
    """The journal of one configuration, and the log of its failures."""

    def __init__(self, config: Config, log: Log, history: History, environ: Mapping[str, str]) -> None:
        """Open the journal. Raises JournalError or JournalBusy."""
        self._log, self._history = log, history
        self._items = {settings.name: settings for settings in config.items}
        self._consul = config.consul
        self.withheld = config.withheld  # what hooks must not inherit, by this configuration and earlier ones
        folder = folder_of(environ.get("RUNTIME_DIRECTORY", ""), config.state_dir)
        self.folder = str(folder)  # also of the events
        self._copies = Copies(folder, config.state_dir, self._copied)
        self._journal = Journal(
            config.state_dir,
            config.consul,
            withheld=config.withheld,
            folder=folder,
            wants_copy=self._copies.want,
        )
        if not self._journal.is_locked:
            self._copies.lock_first(self._journal.keep_lock)
        self.id = ""  # of the journal, once it is read. Blank: it has none
        self.made = self._copies.made  # returns blank once all is on disk, or why it is not
        self.groups: dict[int, tuple[str, Group]] = {}  # on record, with their item, by their number
        self._folders = config.state_dir, folder

    @property
    def machine(self) -> str:
        return self._journal.identity.machine

    def start(self, wanted: Iterable[Wanted], now: float, unwanted: Reason) -> Restored:
        """End the hooks that a crashed process left running. Return the contenders to begin with.

        unwanted: why all that is on record beside ``wanted`` is given up.
        """
        records = dict(self._journal.recorded())
        damaged = any(isinstance(record, UnreadableRecord) for record in records.values())
        self.id = self._journal.id(anew=damaged)
        wanted = (replace(each, place=replace(each.place, journal=self.id)) for each in wanted)
        for name in records:
            self._copies.want(f"{name}{SUFFIX}")
        for name in KEPT:
            if Path(self.folder, name).exists():
                self._copies.want(name)
        self._kill_leftovers(records)
        self.withheld |= {name for record in records.values() for name in record.withheld}
        for name, record in records.items():
            if isinstance(record, UnreadableRecord):
                known = name in self._items or record.settings is not None
                remedy = "on_lose runs" if known else "see that nothing of it acts, then remove the file"
                self._log.line("error", "journal-unreadable", item=name, why=str(record), remedy=remedy)
            else:
                step, session = record.state.step, record.state.session
                self._log.line("info", "recorded", item=name, step=step, session=session)
                rebooted = record.identity.machine == self.machine and not self._is_ours(record.identity)
                if rebooted and record.settings.watchdog and step not in (Point.NONE, Point.SESSION):
                    self._log.line("error", "machine-reset", item=name)
                if session and _cluster(record.consul) != _cluster(self._consul):
                    about = f"session {session} was begun at {record.consul.address}"
                    why = f"{about}: if that is another cluster, destroy it there"
                    self._log.line("warning", "recorded-elsewhere", item=name, why=why)
        origin = ProcessIdentity(secrets.token_hex(8), self._journal.identity, now)
        return restore(wanted, records, origin, unwanted=unwanted)

    def _kill_leftovers(self, records: dict[str, Recorded | UnreadableRecord]) -> None:
        """End the hooks of all records at once, because belief may be running out meanwhile.

        The process groups that are found are added to the records.
        """
        marks = {name: tuple(self._marks(record)) for name, record in records.items()}
        transitions = tuple(mark for marked in marks.values() for mark in marked)
        found = find_abandoned(transitions)
        groups, of_tenures = list(found), list[tuple[str, Group]]()
        for name, record in records.items():
            if isinstance(record, Recorded) and self._is_ours(record.identity):
                also = tuple(group for group in found if group.transition in marks[name])
                records[name] = record = replace(record, groups=(*record.groups, *also))
                groups += record.groups
                marked = marks_of(record.state.session, "acquire", "adopt", "run", *LOSE_SIDE)
                own = (group for group in record.groups if group.transition in marked)
                # While a group has a process, no other one gets its number, even if its leader has ended.
                of_tenures += [(name, each) for each in own if started_at(each.pgid) in (None, each.started)]
        for trouble in kill_abandoned(groups, transitions, within_s=KILL_WITHIN_S) if groups else ():
            self._log.line("error", "leftover-process", why=trouble)
        for name, group in of_tenures:
            if runs(group.pgid):  # KILL may not have ended all of it
                self.groups[group.pgid] = name, group
                self._journal.group_began(name, group)

    def _marks(self, record: Recorded | UnreadableRecord) -> Iterator[str]:
        """Yield the transitions whose processes must end.

        The older lines of a record that cannot be read name its session, and the tenure may have come one
        step further than these lines show.
        """
        known = record.last if isinstance(record, UnreadableRecord) else record
        if known is None or not self._is_ours(known.identity):
            return
        yield from (group.transition for group in known.groups)
        yield from transitions_of(known.state)
        if isinstance(record, UnreadableRecord) and known.state.session:
            begun = ("acquire", "adopt") if known.state.step in (Point.SESSION, Point.TENURE) else ()
            yield from marks_of(known.state.session, *begun, "run", *LOSE_SIDE)

    def _is_ours(self, identity: MachineIdentity) -> bool:
        """Return whether the record is of this machine and boot, so that its process numbers mean something.

        The host may have another name now.
        """
        here = self._journal.identity
        return (identity.machine, identity.boot) == (here.machine, here.boot)

    def write(self, write: WriteRecord) -> str:
        """Write a record. Return blank when the kernel has it, and else why not."""
        why_not = self._journal.write(write)
        self._log.noted("journal-failed", write.item, why_not)
        return why_not

    def keep(self, accepted: bytes) -> None:
        """Keep the configuration that this process goes by from now on, for a start that cannot read it."""
        if accepted:
            self._copies.put(ACCEPTED, accepted)

    def kept(self, name: str) -> bytes:
        """Return what an earlier process has kept in this file. The disk may take a second not to answer."""
        return newest(*self._folders, name)

    def keep_as(self, name: str, content: bytes) -> None:
        self._copies.put(name, content)

    def follow(self, config: Config) -> None:
        """Use another configuration. What an earlier one withheld stays so: its hooks may still run."""
        self.withheld |= config.withheld
        self._journal.follow(config.consul, self.withheld)

    def group_began(self, started: Started, pgid: int) -> None:
        """Record the process group of a hook or run child, but not of a check, until ``group_ended``."""
        context = started.context
        if context.event == "check":
            return
        item, group = self.groups[pgid] = context.name, Group(pgid, started_at(pgid) or 0, context.transition)
        self._log.noted("journal-failed", item, self._journal.group_began(item, group))

    def group_ended(self, pgid: int) -> None:
        """Drop a process group of which nothing is left. The record of the step that follows has that."""
        if pgid in self.groups:
            item, group = self.groups.pop(pgid)
            self._journal.group_ended(item, group)
            asyncio.get_running_loop().call_soon(self._settle, item)

    def _settle(self, item: str) -> None:
        """Record the changes of the item's process groups, unless a record has them already."""
        why_not = self._journal.settle(item)
        if why_not is not None:
            self._log.noted("journal-failed", item, why_not)

    def _copied(self, why_not: str) -> None:
        self._history.uncopied = why_not
        self._log.noted("copies-failed", "", why_not)

    async def close(self) -> None:
        """Close the journal. The records stay, on disk unless it hangs."""
        await self._copies.finish()
        self._journal.close()


def _cluster(consul: ConsulSettings) -> tuple[str | None, ...]:
    return (consul.address, consul.datacenter, consul.namespace, consul.partition)


def config_of_records(directory: str, environ: Mapping[str, str]) -> Config | None:
    """Return a configuration by which the recorded items can be wound up. None: nothing is on record.

    The daemon uses it when its own configuration cannot be loaded, so that running applications are not
    orphaned. Neither a token nor a password is on record, so they are taken from the environment, except for
    a token that is in a file. Raises JournalError or JournalBusy.
    """
    folder = folder_of(environ.get("RUNTIME_DIRECTORY", ""), directory)
    if folder == Path(directory) or not folder.is_dir():
        try:
            await_answer(directory, START_WITHIN_S)
        except NoAnswer as error:
            raise JournalBusy(f"cannot use state_dir {directory}: {error.strerror}") from None
        if not Path(directory).is_dir():
            return None
    journal = Journal(directory, ConsulSettings(address=""), folder=folder)
    found = [record for _, record in journal.recorded() if record.consul is not None]
    journal.close()
    if not found:
        return None
    withheld = frozenset(name for record in found for name in record.withheld)
    consul = found[-1].consul
    assert consul is not None
    consul = replace(consul, http_auth=environ.get("CONSUL_HTTP_AUTH") or None)
    if consul.token_file is None:
        consul = replace(consul, token=environ.get("CONSUL_HTTP_TOKEN") or None)
    return Config(consul, LogSettings(), (), directory, withheld=withheld)
