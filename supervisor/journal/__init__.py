"""The records that survive a crash of the supervisor: one file for each item under the state directory.

    format.py        the format: lines with checksums, of which the newest state is complete
    checked_line.py  one such line
    serialize.py     dataclasses as plain values and back
    event_file.py    the newest events of this node, for people: in the folder of the records
    fsync.py         a child that forces files to disk, while no part waits for it

A record counts as written when the kernel has it, which survives any crash of this process. Only a loss of
power can take it back, and that ends the application as well. A record is written by one write(2), before
anything that depends on it. A record that could not be written whole is overwritten. The directory is locked,
because two processes with one journal would each believe the other's records. No function here interprets a
record.
"""

import fcntl
import os
import socket
import stat
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from supervisor.config.settings import ConsulSettings
from supervisor.core.actions import EMPTY_RECORD, Record, Step, WriteRecord
from supervisor.core.frozen import replace
from supervisor.core.settings import ItemSettings
from supervisor.errors import NotPossible, OperatorError
from supervisor.filesystem.children import NoAnswer
from supervisor.filesystem.reading import Pulse
from supervisor.hooks.leftovers import Group
from supervisor.journal.format import (
    MachineIdentity,
    Recorded,
    UnreadableRecord,
    is_at_rest,
    read,
    settings_line,
    state_line,
)

__all__ = ["MachineIdentity", "Journal", "JournalError", "Recorded", "UnreadableRecord", "identity_here"]

ENDED_FROM = (Step.TENURE, Step.HOLDING, Step.LOSING, Step.STUCK)
COMPACT_BYTES = 128 * 1024  # about 250 records; a holder adds a record with each response of Consul
RESERVE = b" " * 16 * 1024  # written ahead of the records, so that a loss is recorded even on a full disk
RESERVE_MIN_BYTES = 8 * 1024
FILE_BYTES_MAX = 4 * 1024 * 1024  # the configuration refuses far smaller settings already
SUFFIX = ".journal"
# Of a file system that is on no disk of this machine. One that works answers in some ten milliseconds.
START_WITHIN_S = 3.0
WRITE_WITHIN_S = 0.25  # the loop stands still that long once; later writes fail until the file system answers
CAREFULLY = os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOFOLLOW  # a pipe in the file's place would block the loop
START_FIELD = 19  # of /proc/PID/stat behind the name: starttime, the 22nd field in proc(5)


class JournalError(OperatorError):
    """The state directory cannot be used."""


class JournalBusy(NotPossible):
    """The state directory cannot be used now: another process has it, or its file system does not answer."""


def identity_here() -> MachineIdentity:
    """Return the identity of this machine, host and boot."""
    machine = _text("/etc/machine-id")
    return MachineIdentity(machine, socket.gethostname(), _boot())


def _boot() -> str:
    """Return the kernel's id of this boot and the start time of process 1.

    In a container whose file system is protected, the host's id stays when the container boots anew. The
    start time of process 1 does not.
    """
    first = _text("/proc/1/stat").rpartition(")")[2].split()
    return " ".join([_text("/proc/sys/kernel/random/boot_id"), *first[START_FIELD : START_FIELD + 1]])


def _text(path: str) -> str:
    try:
        return Path(path).read_text(encoding="ascii").strip()
    except OSError:
        return ""


@dataclass(slots=True)
class _File:
    """One item's file as this process writes it.

    state: the newest record.
    groups: the process groups of hooks that are under way.
    settings: the settings of the newest settings line. None: there is no such line.
    fd: the open file. -1: it is not open.
    size: the number of bytes that are surely whole.
    reserved: the number of bytes for which the disk has room for certain.
    outdated: whether Consul's settings or the withheld variables have changed since the settings line.
    unsettled: whether ``groups`` has changed since the newest state line.
    """

    path: Path
    state: Record = EMPTY_RECORD
    groups: tuple[Group, ...] = ()
    settings: ItemSettings | None = None
    fd: int = -1
    size: int = 0
    reserved: int = 0
    outdated: bool = False
    unsettled: bool = False


class Journal:
    """The records of all items.

    withheld: the variables that hooks must not inherit.
    wants_disk: receives each path whose record has changed in more than its contact.
    """

    def __init__(
        self,
        directory: str,
        consul: ConsulSettings,
        *,
        withheld: Iterable[str] = (),
        identity: MachineIdentity | None = None,
        wants_disk: Callable[[Path], None] = lambda path: None,
    ) -> None:
        """Make and lock the directory. Raises JournalError or JournalBusy when that is not possible."""
        self._directory = Path(directory)
        self._pulse = Pulse(directory)
        self._consul = consul
        self._withheld = tuple(sorted(withheld))
        self.identity = identity_here() if identity is None else identity
        self._wants_disk = wants_disk
        self._files: dict[str, _File] = {}
        self._lock = self._open()

    def _open(self) -> int:
        remedy = "set state_dir to a directory that this user may write to, or $STATE_DIRECTORY"
        try:
            self._pulse.check(START_WITHIN_S)
        except NoAnswer as error:
            self._pulse.close()
            text = f"cannot use state_dir {self._directory}: {error.strerror}"
            raise JournalBusy(f"{text}; it belongs on a disk of this machine") from None
        except OSError:
            pass  # no child can be started to check the file system, so it is taken to answer
        try:
            self._directory.mkdir(mode=0o700, parents=True, exist_ok=True)
            lock = self._open_lock()
        except OSError as error:
            raise JournalError(
                f"cannot use state_dir {self._directory}: {error.strerror}; {remedy}"
            ) from None
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(lock)
            text = f"cannot use state_dir {self._directory}: another consul-supervisor is using it"
            raise JournalBusy(f"{text}; each needs a state_dir of its own") from None
        return lock

    def _open_lock(self) -> int:
        """Open the lock file.

        When the disk takes no more writes, open it for reading if there are records, because they still
        count.
        """
        path = self._directory / "lock"
        try:
            return os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError:
            if not any(self._directory.glob(f"*{SUFFIX}")):
                raise
            return os.open(path, os.O_RDONLY | os.O_CLOEXEC)

    def follow(self, consul: ConsulSettings, withheld: Iterable[str]) -> None:
        """Use the Consul settings and withheld variables of another configuration.

        They are written before the next state of each item.
        """
        new = (consul, tuple(sorted(withheld)))
        if new == (self._consul, self._withheld):
            return
        self._consul, self._withheld = new
        for file in self._files.values():
            file.outdated = True

    def close(self) -> None:
        """Close all files and unlock the directory for the next process. The records stay."""
        for file in self._files.values():
            self._close(file)
        os.close(self._lock)
        self._pulse.close()

    # --- reading -------------------------------------------------------------------------------

    def recorded(self) -> Iterator[tuple[str, Recorded | UnreadableRecord]]:
        """Yield the name and the record of each item that earlier processes left."""
        for path in sorted(self._directory.glob(f"*{SUFFIX}")):
            item = path.name.removesuffix(SUFFIX)
            try:
                found = read(self._content(path))
                if found.settings.name != item:
                    raise UnreadableRecord(f"it is a copy of the record of {found.settings.name}")
                self._go_on(item, found)
                yield item, found
            except UnreadableRecord as unreadable:
                yield item, unreadable

    def _go_on(self, item: str, found: Recorded) -> None:
        """Continue the file that was found, because a hook may begin before our first record.

        Its group is then recorded with the record that was found.
        """
        file = self._file(item)
        foreign = found.state.foreign or found.identity != self.identity
        file.state = replace(found.state, foreign=foreign)
        file.settings = found.settings

    def _content(self, path: Path) -> bytes:
        try:
            with open(path, "rb", opener=_carefully) as file:
                if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                    raise UnreadableRecord(f"{path} is not a regular file")
                content = file.read(FILE_BYTES_MAX + 1)
        except OSError as error:
            raise UnreadableRecord(f"cannot read {path}: {error.strerror}") from error
        if len(content) > FILE_BYTES_MAX:
            raise UnreadableRecord(f"{path} is larger than {FILE_BYTES_MAX} bytes")
        return content

    # --- writing -------------------------------------------------------------------------------

    def write(self, write: WriteRecord) -> str:
        """Write a record.

        Return blank when the kernel has it, and else why not. The record before it then still counts.

        When the record that follows the end of a tenure cannot be written, the record of the tenure is
        removed instead.
        """
        file = self._file(write.item)
        known = file.state
        why_not = self._write(file, write.record, write.settings)
        if why_not and write.record.step is Step.SESSION and known.step in ENDED_FROM:
            why_not = self._forget(file) and why_not
        if not why_not and replace(known, contact=write.record.contact) != write.record:
            self._wants_disk(file.path)
        return why_not

    def group_began(self, item: str, group: Group) -> str:
        """Record the process group of a hook, until the group ends.

        Return blank, or why it could not be written.
        """
        file = self._recorded_file(item)
        if file is None:
            return ""
        file.groups = (*file.groups, group)
        file.unsettled = True  # the next record has the group even if this write fails
        return self.settle(item)

    def group_ended(self, item: str, group: Group) -> None:
        """Drop a process group of which nothing is left. The next record, or ``settle``, writes that."""
        file = self._recorded_file(item)
        if file is not None:
            file.groups = tuple(other for other in file.groups if other != group)
            file.unsettled = True

    def is_settled(self, item: str) -> bool:
        """Return whether the newest record has all changes of the item's process groups."""
        file = self._recorded_file(item)
        return file is None or not file.unsettled

    def settle(self, item: str) -> str:
        """Record the changes of the item's process groups.

        Return blank, or why they could not be written.
        """
        file = self._recorded_file(item)
        assert file is not None and file.settings is not None, f"{item} owes no record"
        return self._write(file, file.state, file.settings)

    def _recorded_file(self, item: str) -> _File | None:
        """Return the file of an item with a record.

        None: there is no record, so nothing could be wound up.
        """
        file = self._files.get(item)
        return None if file is None or file.settings is None else file

    def _forget(self, file: _File) -> str:
        """Remove the record. On a full disk, no record at all also means that a tenure has ended.

        If this process crashes before it has destroyed the session, the session ends by its TTL.
        """
        file.groups = ()
        return self._write(file, EMPTY_RECORD, file.settings) if file.settings is not None else ""

    def _file(self, item: str) -> _File:
        file = self._files.get(item)
        if file is None:
            file = self._files[item] = _File(self._directory / f"{item}{SUFFIX}")
        return file

    def _write(self, file: _File, state: Record, settings: ItemSettings) -> str:
        try:
            self._pulse.check(WRITE_WITHIN_S)
            if is_at_rest(state, file.groups):
                self._remove(file)
            else:
                line = state_line(state, file.groups, self.identity, _wall_clock())
                begins = file.state.step not in ENDED_FROM or state.step in (Step.TENURE, Step.HOLDING)
                self._append(file, line, settings, keeps_room=begins)
        except OSError as error:
            return f"cannot write {file.path}: {error.strerror}"
        file.state, file.unsettled = state, False
        return ""

    def _append(self, file: _File, line: bytes, settings: ItemSettings, *, keeps_room: bool) -> None:
        """Write the line, behind a line of the settings when the newest one is not up to date.

        keeps_room: whether the write fails unless there is room for later lines, because the hook or tenure
            that the line begins must be able to end. False: the line is an end, which takes the room that was
            kept.
        """
        if file.fd >= 0 and not _is_there(file):
            self._close(file)  # the file was moved or cut, so a complete new one is written
            file.settings = None
        compacts = file.size > (COMPACT_BYTES if keeps_room else 2 * COMPACT_BYTES)
        anew = compacts or (file.fd < 0 and not self._goes_on(file))
        if settings is not file.settings or file.outdated or anew:
            line = settings_line(settings, self._consul, self._withheld) + line
        if anew:
            self._rewrite(file, line + RESERVE)
        elif keeps_room and file.size + len(line) + RESERVE_MIN_BYTES > file.reserved:
            _write_whole(file.fd, line + RESERVE, file.size, file.reserved)
            file.reserved = file.size + len(line + RESERVE)
        else:
            _write_whole(file.fd, line + b" ", file.size, file.reserved)
        file.size = len(line) if anew else file.size + len(line)
        file.reserved = max(file.reserved, file.size + 1)  # the line and the space behind it
        file.settings, file.outdated = settings, False

    def _goes_on(self, file: _File) -> bool:
        """Open the file of an earlier process, so that the room that it kept stays.

        Return whether this was possible.

        A file that is missing or damaged, a link or a pipe is replaced as a whole, and stays as it is until
        then.
        """
        try:
            if not stat.S_ISREG(os.lstat(file.path).st_mode):
                return False
            fd = os.open(file.path, os.O_RDWR | CAREFULLY)
        except FileNotFoundError:
            return False
        try:
            content = os.pread(fd, FILE_BYTES_MAX + 1, 0)
        except OSError:
            os.close(fd)
            raise
        whole = len(content.rstrip(b" "))
        if not content[:whole].endswith(b"\n") or whole == len(content) or len(content) > FILE_BYTES_MAX:
            os.close(fd)
            return False
        file.fd, file.size, file.reserved = fd, whole, len(content)
        return True

    def _rewrite(self, file: _File, content: bytes) -> None:
        """Write this content to a new file, which takes the place of the old one at once."""
        new = file.path.with_suffix(".new")
        fd = os.open(new, os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
        try:
            _write_whole(fd, content, 0, 0)
            os.replace(new, file.path)
        except OSError:
            os.close(fd)
            raise
        self._close(file)
        file.fd, file.reserved = fd, len(content)

    def _remove(self, file: _File) -> None:
        with suppress(FileNotFoundError):
            file.path.unlink()
        self._close(file)
        file.settings = None

    def _close(self, file: _File) -> None:
        if file.fd >= 0:
            os.close(file.fd)
        file.fd, file.size, file.reserved = -1, 0, 0


def _carefully(path: str, flags: int) -> int:
    return os.open(path, flags | CAREFULLY)


def _is_there(file: _File) -> bool:
    """Return whether a process that starts now would find the file to which we write, with all its lines."""
    try:
        found, ours = os.stat(file.path), os.fstat(file.fd)
    except FileNotFoundError:
        return False
    return (found.st_dev, found.st_ino) == (ours.st_dev, ours.st_ino) and found.st_size >= file.size


def _write_whole(fd: int, content: bytes, at: int, reserved: int) -> None:
    """Write all of the content at this place, or raise OSError and blank any part that was written."""
    try:
        written = os.pwrite(fd, content, at)
        if written < len(content):
            os.pwrite(fd, content[written:], at + written)  # raises the reason why the rest has no room
    except OSError:
        with suppress(OSError):
            os.pwrite(fd, b" " * min(len(content), max(0, reserved - at)), at)
            os.ftruncate(fd, max(at, reserved))
        raise


def _wall_clock() -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
