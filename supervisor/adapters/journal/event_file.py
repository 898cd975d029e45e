"""The file of the newest events of this node, so that people can read them after a restart.

Two files make a ring: when the newer one is full it takes the place of the older one. Each line has a
checksum, so a damaged line is left out and harms no other line. The first line that a process writes into a
file names the machine, because a disk may have been cloned.

Nothing depends on an event. A write that fails is tried again by its caller. The files are copied to disk
with the records: the end of the machine may take the newest events.
"""

import errno
import os
import stat
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from supervisor.adapters.journal.checked_line import content_of, line_of

NEWER, OLDER = "events", "events.1"
FILE_BYTES_MAX = 512 * 1024  # some 2,000 events, and as many in the older file: months of a quiet node
BATCH_MAX = 32  # events in one write, which stays far below the size of a file and takes the loop 0.2 ms
MODE = 0o600  # as records have it
VERSION = 1
OPENED = os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOFOLLOW  # a pipe in the file's place would block the loop


class EventFile:
    """The events in a state directory, as one process appends to them. ``machine`` is this machine's id."""

    def __init__(self, directory: str, machine: str) -> None:
        self._directory = Path(directory)
        self._machine = machine
        self._named = False

    def append(self, events: Sequence[dict[str, Any]]) -> None:
        """Append at most BATCH_MAX events, all or none. Raises OSError."""
        # A line feed comes first, because a loss of power may have cut the line before.
        head = b"\n" + line_of({"events": VERSION, "machine": self._machine})
        lines = b"".join(map(line_of, events))
        fd, size = self._opened()
        if size and size + len(head) + len(lines) > FILE_BYTES_MAX:
            os.close(fd)
            os.replace(self._directory / NEWER, self._directory / OLDER)
            fd, size = self._opened()
        try:
            _append_whole(fd, lines if size and self._named else head + lines, size)
        finally:
            os.close(fd)
        self._named = True

    def _opened(self) -> tuple[int, int]:
        fd = _regular(self._directory / NEWER, os.O_RDWR | os.O_CREAT | os.O_APPEND)
        return fd, os.fstat(fd).st_size


def lines_in(directory: str) -> list[bytes]:
    """Return the lines of both files, the oldest first. Raises OSError."""
    return [line for name in (OLDER, NEWER) for line in _content(Path(directory) / name).split(b"\n")]


def events_of(lines: Iterable[bytes], machine: str) -> Iterator[dict[str, Any] | None]:
    """Yield the event of each line. None: the line is damaged, of another machine, or no event."""
    ours = True
    for line in lines:
        content = content_of(line)
        if content is not None and "events" in content:
            ours = content.get("machine") == machine
        elif content is not None and ours and all(isinstance(content.get(n), str) for n in ("time", "event")):
            yield content
            continue
        yield None


def _content(path: Path) -> bytes:
    try:
        fd = _regular(path, os.O_RDONLY)
    except FileNotFoundError:
        return b""
    try:
        return os.pread(fd, FILE_BYTES_MAX, 0)
    finally:
        os.close(fd)


def _regular(path: Path, flags: int) -> int:
    """Open a file. Raises OSError, also for one that is not a regular file."""
    fd = os.open(path, flags | OPENED, MODE)
    if not stat.S_ISREG(os.fstat(fd).st_mode):
        os.close(fd)
        raise OSError(errno.EINVAL, "it is not a regular file")
    return fd


def _append_whole(fd: int, lines: bytes, size: int) -> None:
    """Append all of the lines, or raise OSError and leave the file as it was."""
    written = os.write(fd, lines)
    if written < len(lines):
        os.ftruncate(fd, size)
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
