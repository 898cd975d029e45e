"""What survives a crash of ours: one file per item under the state directory.

    format.py      the format: lines with checksums, the newest tells the whole truth
    serialize.py   dataclasses as plain values and back
    fsync.py       a child that forces files to disk, for which nobody waits

Written means handed to the kernel, which survives any crash of ours; only a loss of power can take
it back, and that ends the application, too. A record is written before what depends on it, by one
write(2); what could not be written whole is overwritten again. The directory is locked: two processes
with one journal would each believe the other's records. Nothing here knows what a record means.
"""

import fcntl
import os
import socket
import stat
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from supervisor.config.settings import ConsulSettings
from supervisor.core.actions import EMPTY_RECORD, Record, Step, WriteRecord
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
COMPACT_BYTES = 128 * 1024  # about 250 records; a holder adds one with each answer of Consul
RESERVE = b" " * 16 * 1024  # written ahead of the records, so that a loss is on record on a full disk, too
RESERVE_MIN_BYTES = 8 * 1024
FILE_BYTES_MAX = 4 * 1024 * 1024  # settings of a megabyte are refused long before
SUFFIX = ".journal"
# Of a file system that is no disk of this machine; one that works answers in some ten milliseconds.
START_WITHIN_S = 3.0
WRITE_WITHIN_S = 0.25  # while the loop stands still, once; then each write is refused until it answers
CAREFULLY = os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOFOLLOW  # a pipe in its place would keep us waiting
START_FIELD = 19  # of /proc/PID/stat behind the name: starttime, in proc(5) the 22nd of all


class JournalError(OperatorError):
    """The state directory cannot be used."""


class JournalBusy(NotPossible):
    """The state directory cannot be used now: another process uses it, or its file system is silent."""


def identity_here() -> MachineIdentity:
    """This machine, host and boot."""
    machine = _text("/etc/machine-id")
    return MachineIdentity(machine, socket.gethostname(), _boot())


def _boot() -> str:
    """The kernel's name of it and the start of process 1: where the file system is protected, a container
    that booted anew sees its host's name."""
    first = _text("/proc/1/stat").rpartition(")")[2].split()
    return " ".join([_text("/proc/sys/kernel/random/boot_id"), *first[START_FIELD : START_FIELD + 1]])


def _text(path: str) -> str:
    try:
        return Path(path).read_text(encoding="ascii").strip()
    except OSError:
        return ""


@dataclass(slots=True)
class _File:
    """One item's file as this process writes it. ``size``: of what is surely whole;
    ``reserved``: so far the disk has room for certain. ``outdated``: how Consul is reached, or what is
    withheld, is no longer what its settings' line says. ``unsettled``: no line says what ``groups`` is."""

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
    """The records of all items. ``wants_disk`` is told of each path whose record has changed in
    more than its contact."""

    def __init__(
        self,
        directory: str,
        consul: ConsulSettings,
        *,
        withheld: Iterable[str] = (),
        identity: MachineIdentity | None = None,
        wants_disk: Callable[[Path], None] = lambda path: None,
    ) -> None:
        """Makes and locks the directory. Raises JournalError or JournalBusy when that cannot be."""
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
            pass  # nobody can be asked now: then it is as it was before anybody asked
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
        """Where nothing can be written any more (a disk with errors), what is on record still counts."""
        path = self._directory / "lock"
        try:
            return os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError:
            if not any(self._directory.glob(f"*{SUFFIX}")):
                raise
            return os.open(path, os.O_RDONLY | os.O_CLOEXEC)

    def follow(self, consul: ConsulSettings, withheld: Iterable[str]) -> None:
        """Another file is in force: with the next state of each item stands what it says of these."""
        told = (consul, tuple(sorted(withheld)))
        if told == (self._consul, self._withheld):
            return
        self._consul, self._withheld = told
        for file in self._files.values():
            file.outdated = True

    def close(self) -> None:
        """The records stay; the directory is free for the next process."""
        for file in self._files.values():
            self._close(file)
        os.close(self._lock)
        self._pulse.close()

    # --- reading -------------------------------------------------------------------------------

    def recorded(self) -> Iterator[tuple[str, Recorded | UnreadableRecord]]:
        """What earlier processes left, by the name of the item."""
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
        """A hook may begin before our first record: its group then stands beside what we found."""
        file = self._file(item)
        foreign = found.state.foreign or found.identity != self.identity
        file.state = replace(found.state, foreign=foreign)
        file.settings = found.settings

    def _content(self, path: Path) -> bytes:
        try:
            with open(path, "rb", opener=_carefully) as file:
                if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                    raise UnreadableRecord(f"{path} is no regular file")
                content = file.read(FILE_BYTES_MAX + 1)
        except OSError as error:
            raise UnreadableRecord(f"cannot read {path}: {error.strerror}") from error
        if len(content) > FILE_BYTES_MAX:
            raise UnreadableRecord(f"{path} is larger than {FILE_BYTES_MAX} bytes")
        return content

    # --- writing -------------------------------------------------------------------------------

    def write(self, write: WriteRecord) -> str:
        """Blank when the kernel has it; else why not, and what stood there before still does."""
        file = self._file(write.item)
        known = file.state
        why_not = self._write(file, write.record, write.settings)
        if why_not and write.record.step is Step.SESSION and known.step in ENDED_FROM:
            why_not = self._forget(file) and why_not
        if not why_not and replace(known, contact=0.0) != replace(write.record, contact=0.0):
            self._wants_disk(file.path)
        return why_not

    def group_began(self, item: str, group: Group) -> str:
        """A hook's process group is on record from now on, until it ends."""
        file = self._recorded_file(item)
        if file is None:
            return ""
        file.groups = (*file.groups, group)
        file.unsettled = True  # whatever becomes of this write, the next one says so
        return self.settle(item)

    def group_ended(self, item: str, group: Group) -> None:
        """Nothing of it is left to be killed: the next record says so, or ``settle``."""
        file = self._recorded_file(item)
        if file is not None:
            file.groups = tuple(other for other in file.groups if other != group)
            file.unsettled = True

    def is_settled(self, item: str) -> bool:
        """Whether no record is owed that says what has changed of its groups."""
        file = self._recorded_file(item)
        return file is None or not file.unsettled

    def settle(self, item: str) -> str:
        """What has changed of its groups is on record from now on; else why not."""
        file = self._recorded_file(item)
        assert file is not None and file.settings is not None, f"{item} owes no record"
        return self._write(file, file.state, file.settings)

    def _recorded_file(self, item: str) -> _File | None:
        """None for an item without a record: of that nothing could be wound up, so nothing is kept."""
        file = self._files.get(item)
        return None if file is None or file.settings is None else file

    def _forget(self, file: _File) -> str:
        """On a full disk: that a tenure has ended can also be said by no record at all. The session is
        then left to its TTL, should we crash before it is destroyed."""
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
        """The line, behind settings if those on record are others. ``keeps_room``: without room for how
        it ends, what this line speaks of must not begin; an end takes the room that was kept."""
        if file.fd >= 0 and not _is_there(file):
            self._close(file)  # somebody has moved or cut it: the whole truth goes into a new one
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
        file.reserved = max(file.reserved, file.size + 1)  # a line without a space behind it has been cut
        file.settings, file.outdated = settings, False

    def _goes_on(self, file: _File) -> bool:
        """Whether an earlier process left a file that ends as it should: the room that it kept stays. What
        is missing or damaged, a link or a pipe, is replaced as a whole, and says until then what it says."""
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
        """The same truth in a new file, which takes the old one's place at once."""
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
    """Whether what a process would find that starts now is what we write to, as far as we wrote it."""
    try:
        found, ours = os.stat(file.path), os.fstat(file.fd)
    except FileNotFoundError:
        return False
    return (found.st_dev, found.st_ino) == (ours.st_dev, ours.st_ino) and found.st_size >= file.size


def _write_whole(fd: int, content: bytes, at: int, reserved: int) -> None:
    """All of it, at this place; or OSError, and what stands there is as good as nothing."""
    try:
        written = os.pwrite(fd, content, at)
        if written < len(content):
            os.pwrite(fd, content[written:], at + written)  # says why the rest has no room
    except OSError:
        with suppress(OSError):
            os.pwrite(fd, b" " * min(len(content), max(0, reserved - at)), at)
            os.ftruncate(fd, max(at, reserved))
        raise


def _wall_clock() -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
