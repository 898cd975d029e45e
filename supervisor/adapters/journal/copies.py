"""The records in memory, and their copies on disk.

A record must survive the death of this process, and a disk may hang. So a process writes its records below
the runtime folder that systemd gives it (/run, in memory), and a child copies them to ``state_dir``, mostly
for a start after a boot. A disk that hangs hangs that child and nothing else, and there is never more than
one. Without a runtime folder the records themselves are in ``state_dir``, and the child only syncs them.

Which one counts: a copy has the time of its record, and that time never goes back, even if the clock does. So
a copy of ours is never newer. A copy that is newer was written by an earlier release, which knows
``state_dir`` alone. The time of COMPLETE stands for all records that are gone. Without COMPLETE every copy
counts, because no process of this boot has taken over the copies yet. An orderly stop removes the records
once all are copied.

A process that knows ``state_dir`` alone ends a record by removing its copy. A copy may be gone for another
reason (it was never made, or a disk was wiped), so that counts only where the child has noted the copy, and
the events on disk show that another process has run since.

The last accepted configuration is kept here as well, because it must outlast this process like a record.
"""

import asyncio
import errno
import fcntl
import os
import re
import shutil
import socket
from collections.abc import Callable, Iterable
from contextlib import closing, suppress
from functools import partial
from hashlib import sha256
from pathlib import Path

from supervisor.adapters.filesystem.children import WITHIN_S, Child, NoAnswer, spawn
from supervisor.adapters.filesystem.forked import forked, write
from supervisor.adapters.filesystem.mounts import is_local
from supervisor.adapters.journal.format import UnreadableRecord
from supervisor.adapters.journal.record_file import CAREFULLY, read_content
from supervisor.errors import NotPossible

SUFFIX = ".journal"
EVENTS = ("events.1", "events")  # copied with each record
ACCEPTED = "accepted.json"  # the last accepted configuration
ORDERS = "orders.json"  # which orders for the whole fleet this node has seen, and when
SHOTS = "shots.json"  # which machines this node has shot, and when
KEPT = (ACCEPTED, ORDERS, SHOTS)  # beside the records
# The id of these records, which tenure records in Consul carry, and the inode of this very file. It moves
# with the records at a stop and a start, and has no copy while a process runs: records that were copied then
# get another one.
ID = "id"
NOTE = ".copied"  # behind the name of a record: a copy of it was made
COMPLETE = "complete"
DELAY_S = 0.05  # the hook that waits for the record begins first, and one child serves several records
HUNG_S = 10.0  # after which a disk that does not answer is reported
TRIES = 5  # at once, because a record that ends while it is copied fails a try
RETRY_S = 10.0  # after that many failures in a row, such as on a full disk
BYTES_MAX = 64 * 1024 * 1024  # two thousand elections with all hooks that fit into a file take less
END_WITHIN_S = 2.0  # at an orderly stop, when everything else has ended
KEPT_WITHIN_S = 3.0  # how long a command waits for its effect to be on disk
# A copy takes the place of the former one when it is whole and on disk. A record that is gone has no copy.
# The folder is synced last, because a loss of power could undo both else.
_COPY = """
from=$1 to=$2 new=$2/copy; shift 2; cd "$from" || exit
for name; do
  shift
  [ ! -e "$name" ] || set -- "$@" "$name"
done
for copy in "$to"/*.journal; do
  [ -e "$from/${copy##*/}" ] || rm -f -- "$copy" "$from/${copy##*/}.copied" || exit
done
[ $# -gt 0 ] || exec sync -- "$to"
[ "$from" != "$to" ] || exec sync --data -- "$@"
[ -d "$new" ] || mkdir -m 700 "$new" || exit
note() { for name; do true >"$from/$name.copied"; done; }
cp -p -t "$new" -- "$@" && cd "$new" && sync --data -- "$@" && mv -f -t "$to" -- "$@" && note "$@" &&
  exec sync -- "$to"
why=$?
read -r _ _ _ parent _ <"/proc/$$/stat"
for name; do  # an outdated configuration would be used as the last accepted one
  [ "$name" != accepted.json ] || [ "$parent" != "$PPID" ] || cmp -s -- "$from/$name" "$to/$name" ||
    rm -f -- "$to/$name"
done
exit $why
"""
ENVIRON = {"PATH": os.defpath, "LC_ALL": "C"}


class JournalBusy(NotPossible):
    """The state directory cannot be used now: another process has it, or its file system does not answer."""


def folder_of(runtime: str, state_dir: str) -> Path:
    """Return the folder in which the records of ``state_dir`` are written.

    runtime: RUNTIME_DIRECTORY. Blank: no folder in memory is known.
    """
    if not (runtime := runtime.partition(":")[0]):
        return Path(state_dir)
    # Links of a local disk are followed. Another file system may not answer.
    place = os.path.realpath(state_dir) if is_local(state_dir) else os.path.normpath(state_dir)
    return Path(runtime, f"records.{sha256(os.fsencode(place)).hexdigest()[:16]}")


def newest(state_dir: str, folder: Path, name: str) -> bytes:
    """Return the newer one of this file in memory and its copy on disk. Blank: there is none.

    A child reads them, because the disk may hang.
    """
    memory, disk = folder / name, Path(state_dir) / name
    found = b""
    with suppress(OSError):  # the disk fails, or no child can be started
        with closing(
            forked(state_dir, lambda out: write(out, _read_newest(memory, disk)), WITHIN_S)
        ) as child:
            found = child.result() if child.within(WITHIN_S) else b""
    with suppress(OSError):
        found = found or (b"" if memory == disk else _read_newest(memory))
    return found


def _read_newest(*copies: Path) -> bytes:
    found = [each for each in copies if each.exists()]
    if not found:
        return b""
    with max(found, key=lambda each: each.stat().st_mtime_ns).open("rb") as file:
        return file.read(BYTES_MAX)


def answers(state_dir: Path, folder: Path, within_s: float) -> bool:
    """Return whether ``take_over`` ends within this time, by a child that tries it."""
    if folder == state_dir and is_local(str(state_dir)):
        return True
    try:
        with closing(forked(str(state_dir), lambda out: take_over(state_dir, folder), within_s)) as child:
            return child.within(within_s)
    except OSError as error:  # else no child can be started or watched
        return not isinstance(error, NoAnswer)


def take_over(state_dir: Path, folder: Path) -> int:
    """Make and lock ``state_dir``, and let the records in ``folder`` be the newest ones. Return the lock.

    Raises JournalBusy or OSError.
    """
    lock = locked(state_dir)
    if folder == state_dir:
        return lock
    try:
        used_since = any(_is_newer(state_dir / name, folder) for name in EVENTS)
        for copy in (*state_dir.glob(f"*{SUFFIX}"), *(state_dir / name for name in EVENTS)):
            with suppress(FileNotFoundError):
                _compare(copy, folder)
        for note in folder.glob(f"*{SUFFIX}{NOTE}") if used_since else ():
            if not (state_dir / note.stem).exists():
                note.with_suffix("").unlink(missing_ok=True)
                note.unlink()
        for name in KEPT:
            if _is_newer(state_dir / name, folder):
                (folder / name).unlink(missing_ok=True)
        if (state_dir / ID).is_symlink() or (
            state_dir / ID
        ).exists():  # a frozen disk takes no needless write
            if (known := id_in(state_dir, moved=True)) and not (folder / COMPLETE).exists():
                write_id(folder, known)
            (state_dir / ID).unlink()
        (folder / COMPLETE).touch()
    except OSError:
        os.close(lock)
        raise
    return lock


def id_in(folder: Path, *, moved: bool) -> str:
    """Return the id in this folder. Blank: there is none, or its file is a copy and was not ``moved``."""
    with suppress(UnreadableRecord, OSError):
        if found := re.fullmatch(rb"([0-9a-f]{16}) (\d+)", read_content(folder / ID)):
            if moved or int(found[2]) == (folder / ID).lstat().st_ino:
                return found[1].decode()
    return ""


def write_id(folder: Path, known: str) -> str:
    """Write the id into a new file of this folder, and return it. Raises OSError."""
    (folder / ID).unlink(missing_ok=True)
    with open(folder / ID, "x", opener=lambda name, flags: os.open(name, flags | CAREFULLY, 0o600)) as file:
        file.write(f"{known} {os.fstat(file.fileno()).st_ino}")
    return known


def _compare(copy: Path, folder: Path) -> None:
    """Take over a copy that is newer than its record, and remove one whose record is gone."""
    record, time = folder / copy.name, os.lstat(copy).st_mtime_ns
    if not _is_newer(copy, folder):
        if not record.exists():
            with suppress(OSError):
                copy.unlink()
        return
    try:
        content = read_content(copy)
    except UnreadableRecord:
        content = b""  # which counts as damage, too
    new = record.with_suffix(".new")
    new.touch(0o600)
    new.write_bytes(content)
    os.utime(new, ns=(time, time))
    new.replace(record)


def _is_newer(copy: Path, folder: Path) -> bool:
    """Return whether a copy is newer than its record, so that another process has made it."""
    ours = (each.lstat().st_mtime_ns for each in (folder / copy.name, folder / COMPLETE) if each.exists())
    return os.path.lexists(copy) and copy.lstat().st_mtime_ns > next(ours, -1)


def locked(folder: Path) -> int:
    """Make this folder, and return its lock. Raises JournalBusy or OSError.

    The file is opened for reading alone if the disk takes no more writes but has records.
    """
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    path = folder / "lock"
    if path.is_symlink():
        raise JournalBusy(f"{path} is a link, and what it leads to may be another's: remove it")
    try:
        lock = os.open(path, os.O_RDWR | os.O_CREAT | CAREFULLY, 0o600)
    except OSError:
        if not any(folder.glob(f"*{SUFFIX}")):
            raise
        lock = os.open(path, os.O_RDONLY | CAREFULLY)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(lock)
        what = "another consul-supervisor is using it; each needs a state_dir of its own"
        raise JournalBusy(what) from None
    return lock


class Copies:
    """The copies of the records in ``folder``, which a child makes in the background, one at a time."""

    def __init__(self, folder: Path, state_dir: str, result: Callable[[str], None]) -> None:
        self._folder, self._state_dir = folder.absolute(), Path(state_dir).absolute()
        self._result = result  # receives why the copies cannot be made; blank when they are
        self._wanted: set[str] = set()
        self._unwritten: dict[str, bytes] = {}  # by name: what could not be written to ``folder`` yet
        self._task: asyncio.Task[None] | None = None
        self._hurry = asyncio.Event()  # ends a pause between two tries
        self._outcome: asyncio.Future[str] | None = None  # of all that is wanted, for whoever waits for it
        self._take: Callable[[int], None] | None = None

    def want(self, name: str) -> None:
        """Copy the record in this file soon, because it has changed or is gone."""
        self._wanted.add(name)
        self._begin()

    def put(self, name: str, content: bytes) -> None:
        """Write this file to the folder of the records, in the place of a former one, and copy it soon."""
        self._unwritten[name] = content
        self._write()
        self.want(name)

    def lock_first(self, take: Callable[[int], None]) -> None:
        """Copy nothing before ``state_dir`` is locked, because its disk did not answer at the start.

        take: receives the lock.
        """
        self._take = take
        self._begin()

    def _begin(self) -> None:
        if self._task is None:
            self._task = asyncio.get_running_loop().create_task(self._make())

    async def made(self) -> str:
        """Return blank once everything that is wanted is on disk, or why it is not."""
        if self._task is None:
            return ""
        if self._outcome is None:
            self._outcome = asyncio.get_running_loop().create_future()
        self._hurry.set()
        try:
            return await asyncio.wait_for(asyncio.shield(self._outcome), KEPT_WITHIN_S)
        except TimeoutError:
            return self._cannot_copy(str(NoAnswer(str(self._state_dir), KEPT_WITHIN_S).strerror))

    async def finish(self) -> None:
        """Copy everything and remove the records, unless the disk takes longer than END_WITHIN_S."""
        with suppress(OSError):  # TimeoutError, too
            async with asyncio.timeout(END_WITHIN_S):
                if self._task is not None:
                    await self._task
                everything = {*KEPT, ID, *(path.name for path in self._folder.glob(f"*{SUFFIX}"))}
                if self._folder != self._state_dir and not await self._copy(everything):
                    (self._folder / COMPLETE).unlink()  # first, because from now on the copies count
                    shutil.rmtree(self._folder, ignore_errors=True)

    async def _make(self) -> None:
        await asyncio.sleep(DELAY_S)
        failed = 0
        while self._wanted or self._take is not None:
            names, self._wanted = self._wanted, set()
            self._hurry.clear()
            why_not = self._write()
            why = await self._copy(names) or why_not
            failed = failed + 1 if why else 0
            self._wanted |= names if why else set()
            if failed not in range(1, TRIES):
                self._result(why)
            if failed >= TRIES:
                self._resolve(why)
                with suppress(TimeoutError):
                    await asyncio.wait_for(self._hurry.wait(), RETRY_S)
        self._task = None
        self._resolve("")

    def _resolve(self, why: str) -> None:
        if self._outcome is not None:
            self._outcome.set_result(why)
        self._outcome = None

    def _write(self) -> str:
        """Write what could not be written yet. Return blank, or why that is not done.

        A former file is emptied then, because an outdated configuration must not be used as the last one.
        """
        for name, content in tuple(self._unwritten.items()):
            file, new = self._folder / name, self._folder / f"{name}.new"
            try:
                new.unlink(missing_ok=True)
                new.touch(0o600)
                new.write_bytes(content)
                new.replace(file)
            except OSError as error:
                with suppress(OSError):
                    file.write_bytes(b"")
                    new.unlink(missing_ok=True)
                return f"cannot write {file}: {error.strerror}"
            del self._unwritten[name]
        return ""

    async def _copy(self, names: Iterable[str]) -> str:
        """Copy these records and the events by a child. Return blank, or why that is not done."""
        path = str(self._state_dir)
        argv = ["/bin/sh", "-c", _COPY, "copy", str(self._folder), path, *names, *EVENTS]
        try:
            why = await self._lock() if self._take is not None else ""
            why = why or await self._end_of(Child(path, partial(spawn, argv, ENVIRON)))
        except OSError as error:
            why = str(error.strerror)
        return why and self._cannot_copy(why)

    async def _lock(self) -> str:
        """Lock ``state_dir`` by a child, which passes the lock on. Return blank, or why that is not done."""
        ours, theirs = socket.socketpair()
        with ours, theirs:
            send = partial(socket.send_fds, theirs, [b"."])
            path = str(self._state_dir)
            child = forked(path, lambda out: send([locked(self._state_dir)]), HUNG_S, theirs.fileno())
            why = await self._end_of(child)
            if not why and self._take is not None:
                _, locks, *_ = socket.recv_fds(ours, 1, 1, socket.MSG_CMSG_CLOEXEC)
                if not locks:
                    return os.strerror(errno.EMFILE)
                self._take(locks[0])
                self._take = None
        return why.partition(": ")[2] or why  # without the name of the exception

    async def _end_of(self, child: Child) -> str:
        """Wait for the end of a child. Return blank, or the last line of its error."""
        with closing(child):
            while not await child.comes_to_end(HUNG_S):
                self._result(self._cannot_copy(str(NoAnswer(child.path, HUNG_S).strerror)))
            return child.error().rpartition("\n")[2] or "it was killed" if child.wait() else ""

    def _cannot_copy(self, why: str) -> str:
        return f"cannot copy the records to {self._state_dir}: {why}"
