"""The file of one item: a line is written whole or not at all, and room is kept for the lines of a loss.

Spaces behind the newest line keep the room, so that a loss is recorded even on a full disk. A line is bytes
here, and no function interprets a record.
"""

import os
import stat
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from supervisor.adapters.journal.format import UnreadableRecord

COMPACT_BYTES = 32 * 1024  # some 60 records: memory is dear, and a holder adds one with each answer of Consul
RESERVE = b" " * 16 * 1024  # written ahead of the records, so that a loss is recorded even on a full disk
RESERVE_MIN_BYTES = 8 * 1024
FILE_BYTES_MAX = 4 * 1024 * 1024  # the configuration refuses far smaller settings already
CAREFULLY = os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOFOLLOW  # a pipe in the file's place would block the loop


def read_content(path: Path) -> bytes:
    """Return the content of a record's file. Raises UnreadableRecord."""
    try:
        with open(path, "rb", opener=lambda name, flags: os.open(name, flags | CAREFULLY)) as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                raise UnreadableRecord(f"{path} is not a regular file")
            content = file.read(FILE_BYTES_MAX + 1)
    except OSError as error:
        raise UnreadableRecord(f"cannot read {path}: {error.strerror}") from error
    if len(content) > FILE_BYTES_MAX:
        raise UnreadableRecord(f"{path} is larger than {FILE_BYTES_MAX} bytes")
    return content


class RecordFile:
    """One item's file as this process writes it. It is opened by the first line."""

    _fd = -1
    _size = 0  # the number of bytes that are surely whole
    _reserved = 0  # the number of bytes for which the disk has room for certain

    def __init__(self, path: Path) -> None:
        self.path = path

    def append(self, line: bytes, head: Callable[[], bytes], *, head_is_due: bool, keeps_room: bool) -> None:
        """Write the line, behind the head if that is due or if the file begins anew. Raises OSError.

        head: returns the lines without which no later line can be read.
        keeps_room: whether the write fails unless there is room for later lines, because the hook or tenure
            that the line begins must be able to end. False: the line is an end, which takes the room that was
            kept.
        """
        is_lost = self._fd >= 0 and not self._is_there()  # moved or cut, so a complete new one is written
        compacts = self._size > (COMPACT_BYTES if keeps_room else 2 * COMPACT_BYTES)
        anew = is_lost or compacts or (self._fd < 0 and not self._goes_on())
        if head_is_due or anew:
            line = head() + line
        if anew:
            self._rewrite(line + RESERVE)
        elif keeps_room and self._size + len(line) + RESERVE_MIN_BYTES > self._reserved:
            _write_whole(self._fd, line + RESERVE, self._size, self._reserved)
            self._reserved = self._size + len(line + RESERVE)
        else:
            _write_whole(self._fd, line + b" ", self._size, self._reserved)
        self._size = len(line) if anew else self._size + len(line)
        self._reserved = max(self._reserved, self._size + 1)  # the line and the space behind it

    def remove(self) -> None:
        """Remove the file, if it is there. Raises OSError."""
        with suppress(FileNotFoundError):
            self.path.unlink()
        self.close()

    def close(self) -> None:
        """Close the file, which stays."""
        if self._fd >= 0:
            os.close(self._fd)
        self._fd, self._size, self._reserved = -1, 0, 0

    def _is_there(self) -> bool:
        """Return whether a process that starts now would find the file that we write, with all its lines."""
        try:
            found, ours = os.stat(self.path), os.fstat(self._fd)
        except FileNotFoundError:
            return False
        return (found.st_dev, found.st_ino) == (ours.st_dev, ours.st_ino) and found.st_size >= self._size

    def _goes_on(self) -> bool:
        """Open the file of an earlier process, so that its room stays. Return whether that was possible.

        A file that is missing or damaged, a link or a pipe is replaced as a whole, and stays until then.
        """
        try:
            if not stat.S_ISREG(os.lstat(self.path).st_mode):
                return False
            fd = os.open(self.path, os.O_RDWR | CAREFULLY)
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
        self._fd, self._size, self._reserved = fd, whole, len(content)
        return True

    def _rewrite(self, content: bytes) -> None:
        """Write this content to a new file, which takes the place of the old one at once."""
        new = self.path.with_suffix(".new")
        fd = os.open(new, os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
        try:
            _write_whole(fd, content, 0, 0)
            os.replace(new, self.path)
        except OSError:
            os.close(fd)
            raise
        self.close()
        self._fd, self._reserved = fd, len(content)


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
