"""The records that survive a crash of the supervisor: one file for each item.

    record_file.py   the file of one item: lines that are whole or absent, and room for later ones
    format.py        the format: lines with checksums, of which the newest state is complete
    checked_line.py  one such line
    serialize.py     dataclasses as plain values and back
    identity.py      this machine, host and boot
    event_file.py    the newest events of this node, for people: in the folder of the records
    copies.py        where the records are, and a child that copies them to disk, while no part waits for it

A record counts as written when the kernel has it, which survives any crash of this process. Only the end of
the machine can take it back, and that ends the application as well. A record is written by one write(2),
before anything that depends on it. A record that could not be written whole is overwritten. Records and
copies are locked, because two processes with one journal would each believe the other's records. No function
here interprets a record.
"""

import os
import secrets
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from supervisor.adapters.hooks.abandoned import Group
from supervisor.adapters.journal.copies import (
    COMPLETE,
    SUFFIX,
    JournalBusy,
    answers,
    id_in,
    locked,
    take_over,
    write_id,
)
from supervisor.adapters.journal.format import (
    Recorded,
    UnreadableRecord,
    read,
    settings_line,
    state_line,
)
from supervisor.adapters.journal.identity import MachineIdentity, identity_here
from supervisor.adapters.journal.record_file import RecordFile, read_content
from supervisor.config.settings import ConsulSettings
from supervisor.core.actions import EMPTY_RECORD, Point, Record, WriteRecord
from supervisor.core.frozen import replace
from supervisor.core.settings import ItemSettings
from supervisor.errors import OperatorError

__all__ = ["MachineIdentity", "Journal", "JournalError", "Recorded", "UnreadableRecord", "identity_here"]

ENDED_FROM = (Point.TENURE, Point.HOLDING, Point.LOSING, Point.STUCK)
START_WITHIN_S = 3.0  # for a disk with all records; one that works answers in some ten milliseconds
GOES_ON_S = 0.25  # for a disk whose records are in memory as well


class JournalError(OperatorError):
    """The state directory cannot be used."""


@dataclass(slots=True)
class _Entry:
    """One item as this process has recorded it."""

    file: RecordFile
    state: Record = EMPTY_RECORD  # the newest record
    groups: tuple[Group, ...] = ()  # the process groups of hooks that are under way
    settings: ItemSettings | None = None  # of the newest settings line. None: there is no such line
    outdated: bool = False  # whether Consul's settings or the withheld variables changed since that line
    unsettled: bool = False  # whether ``groups`` has changed since the newest state line


class Journal:
    """The records of all items."""

    def __init__(
        self,
        directory: str,
        consul: ConsulSettings,
        *,
        withheld: Iterable[str] = (),
        identity: MachineIdentity | None = None,
        folder: Path | None = None,
        wants_copy: Callable[[str], None] = lambda name: None,
    ) -> None:
        """Make and lock the folders. Raises JournalError or JournalBusy when that is not possible.

        directory: ``state_dir``.
        folder: where the records are written, by ``folder_of``. None: in ``state_dir``.
        """
        self._directory = Path(directory)
        self._folder = folder or self._directory
        self._consul = consul
        self._withheld = tuple(sorted(withheld))  # the variables that hooks must not inherit
        self.identity = identity_here() if identity is None else identity
        self._wants_copy = wants_copy  # receives each file whose record changes in more than its contact
        self._entries: dict[str, _Entry] = {}
        self._locks: list[int] = []
        self.is_locked = False  # whether no other process can use ``state_dir``
        self._newest_ns = 0  # no file in the folder has a later time
        try:
            self._open()
        except (OSError, JournalBusy) as error:
            self.close()
            text = f"cannot use state_dir {self._directory}: "
            if isinstance(error, JournalBusy):
                raise JournalBusy(f"{text}{error}") from None
            remedy = "set state_dir to a directory that this user may write to, or $STATE_DIRECTORY"
            raise JournalError(f"{text}{error.strerror}; {remedy}") from None

    def _open(self) -> None:
        """Let the records in the folder be the newest ones. Where they are, a start waits for no disk."""
        if self._folder != self._directory:
            self._locks.append(locked(self._folder))
        suffices = (self._folder / COMPLETE).exists()
        within_s = GOES_ON_S if suffices else START_WITHIN_S
        try:
            if answers(self._directory, self._folder, within_s):
                self.keep_lock(take_over(self._directory, self._folder))
            elif not suffices:
                what = f"its file system did not answer within {within_s:g} s"
                raise JournalBusy(f"{what}; it belongs on a disk of this machine")
        except OSError:
            if not suffices:
                raise
        if self._folder != self._directory:
            self._newest_ns = max(each.lstat().st_mtime_ns for each in self._folder.iterdir())

    def keep_lock(self, lock: int) -> None:
        """Keep this lock of ``state_dir`` as long as the journal is open."""
        self._locks.append(lock)
        self.is_locked = True

    def id(self, *, anew: bool) -> str:
        """Return the id of these records, made with the first of them. Blank: it cannot be kept.

        anew: make another one, because a record is damaged.
        """
        try:
            known = "" if anew else id_in(self._folder, moved=False)
            return known or write_id(self._folder, secrets.token_hex(8))
        except OSError:
            return ""

    def follow(self, consul: ConsulSettings, withheld: Iterable[str]) -> None:
        """Use these settings and withheld variables. They are written before the next state of each item."""
        new = (consul, tuple(sorted(withheld)))
        if new == (self._consul, self._withheld):
            return
        self._consul, self._withheld = new
        for entry in self._entries.values():
            entry.outdated = True

    def close(self) -> None:
        """Close all files and unlock the directory for the next process. The records stay."""
        for entry in self._entries.values():
            entry.file.close()
        for lock in self._locks:
            os.close(lock)

    # --- reading -------------------------------------------------------------------------------

    def recorded(self) -> Iterator[tuple[str, Recorded | UnreadableRecord]]:
        for path in sorted(self._folder.glob(f"*{SUFFIX}")):
            item = path.name.removesuffix(SUFFIX)
            try:
                found = read(read_content(path))
                if found.settings.name != item:
                    raise UnreadableRecord(f"it is a copy of the record of {found.settings.name}")
                self._go_on(item, found)
                yield item, found
            except UnreadableRecord as unreadable:
                yield item, unreadable

    def _go_on(self, item: str, found: Recorded) -> None:
        """Continue the file that was found, because a hook may begin before our first record."""
        entry = self._entry(item)
        foreign = found.state.foreign or found.identity != self.identity
        entry.state = replace(found.state, foreign=foreign)
        entry.settings = found.settings

    # --- writing -------------------------------------------------------------------------------

    def write(self, write: WriteRecord) -> str:
        """Write a record. Return blank when the kernel has it, and else why not.

        The record before it then still counts, unless it is of a tenure that has ended: that one is removed
        instead, which counts as written.
        """
        entry = self._entry(write.item)
        known, outdated = entry.state, entry.outdated or write.settings is not entry.settings
        why_not = self._write(entry, write.record, write.settings)
        if why_not and write.record.step is Point.SESSION and known.step in ENDED_FROM:
            why_not = self._forget(entry) and why_not
        if not why_not and (outdated or replace(known, contact=write.record.contact) != write.record):
            self._wants_copy(entry.file.path.name)
        return why_not

    def group_began(self, item: str, group: Group) -> str:
        """Record the process group of a hook, until it ends. Return blank, or why that is not written."""
        entry = self._recorded_entry(item)
        if entry is None:
            return ""
        entry.groups = (*entry.groups, group)
        entry.unsettled = True  # the next record has the group even if this write fails
        return self.settle(item) or ""

    def group_ended(self, item: str, group: Group) -> None:
        """Drop a process group of which nothing is left. The next record, or ``settle``, writes that."""
        entry = self._recorded_entry(item)
        if entry is not None:
            entry.groups = tuple(other for other in entry.groups if other != group)
            entry.unsettled = True

    def settle(self, item: str) -> str | None:
        """Record the changes of the item's process groups. Return blank, or why they are not written.

        None: the newest record has them already.
        """
        entry = self._entries.get(item)
        if entry is None or entry.settings is None or not entry.unsettled:
            return None
        return self._write(entry, entry.state, entry.settings)

    def _recorded_entry(self, item: str) -> _Entry | None:
        """Return the entry of an item. None: it has no record, so nothing could be wound up."""
        entry = self._entries.get(item)
        return None if entry is None or entry.settings is None else entry

    def _forget(self, entry: _Entry) -> str:
        """Remove the record. On a full disk, no record at all also means that a tenure has ended.

        If this process crashes before it has destroyed the session, the session ends by its TTL.
        """
        entry.groups = ()
        return self._write(entry, EMPTY_RECORD, entry.settings) if entry.settings is not None else ""

    def _entry(self, item: str) -> _Entry:
        entry = self._entries.get(item)
        if entry is None:
            entry = self._entries[item] = _Entry(RecordFile(self._folder / f"{item}{SUFFIX}"))
        return entry

    def _date(self, written: Path) -> None:
        """Let a file that was written now be no older than any copy, also when the clock was set back."""
        now_ns = time.time_ns()
        if now_ns < self._newest_ns:
            os.utime(written, ns=(self._newest_ns, self._newest_ns))
        self._newest_ns = max(self._newest_ns, now_ns)

    def _write(self, entry: _Entry, state: Record, settings: ItemSettings) -> str:
        try:
            if state == EMPTY_RECORD and not entry.groups:  # a crash could make us forget nothing
                if self._folder != self._directory:
                    os.utime(self._folder / COMPLETE)
                    self._date(self._folder / COMPLETE)
                entry.file.remove()
                entry.settings = None
                self._wants_copy(entry.file.path.name)
            else:
                time_of_day = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
                line = state_line(state, entry.groups, self.identity, time_of_day)
                head = partial(settings_line, settings, self._consul, self._withheld)
                due = settings is not entry.settings or entry.outdated
                begins = entry.state.step not in ENDED_FROM or state.step in (Point.TENURE, Point.HOLDING)
                entry.file.append(line, head, head_is_due=due, keeps_room=begins)
                self._date(entry.file.path)
                entry.settings, entry.outdated = settings, False
        except OSError as error:
            return f"cannot write {entry.file.path}: {error.strerror}"
        entry.state, entry.unsettled = state, False
        return ""
