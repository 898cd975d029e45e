"""Whether a path lies on a disk of this machine, by the kernel's table of mounts.

A file system whose server is gone blocks every process that uses it. This module must never use such a file
system, so it follows a path piece by piece, and stops at the first mount that another machine or a program
serves.
"""

import errno
import os
import re
import select
import shutil
from collections.abc import Iterable
from functools import cache

TABLE = "/proc/self/mountinfo"
LINKS_MAX = 40  # the kernel's limit of symlinks in one path
LOCAL = frozenset(
    "bcachefs btrfs cgroup cgroup2 devpts devtmpfs erofs exfat ext2 ext3 ext4 f2fs hugetlbfs iso9660 jfs "
    "mqueue ntfs3 overlay proc ramfs reiserfs rootfs securityfs squashfs sysfs tmpfs udf vfat xfs zfs".split()
)
KERNELS_OWN = ("/proc/", "/sys/", "/dev/")  # file systems of the kernel, of any kind, which never hang
CHANGED = select.POLLPRI | select.POLLERR  # the events of the table after a mount or unmount, see proc(5)


class Mounts:
    """The table of mounts, read again when the kernel says that it has changed."""

    def __init__(self, table: str = TABLE) -> None:
        """Read the table. Without a table, because /proc is missing, no path counts as local."""
        self._remote: tuple[str, ...] = ("",)
        self._poll = select.poll()
        try:
            self._fd = os.open(table, os.O_RDONLY | os.O_CLOEXEC)
        except OSError:
            self._fd = -1
            return
        self._poll.register(self._fd, CHANGED)
        self._read()

    @property
    def are_all_local(self) -> bool:
        """Whether no file system is mounted that may hang."""
        if self._fd >= 0 and self._poll.poll(0):
            self._read()
        return not self._remote

    def is_local(self, path: str) -> bool:
        """Return whether the path, with every symlink on the way, stays on local disks.

        Never waits for another file system. A missing path counts as if it existed.
        """
        if self.are_all_local:
            return True
        return self._follow(os.path.abspath(path) if not path.startswith("/") else path)

    def _follow(self, path: str) -> bool:
        at, ahead, links = "", path.split("/")[::-1], 0
        while ahead:
            part = ahead.pop()
            if part in ("", "."):
                continue
            if part == "..":
                at = at.rpartition("/")[0]
                continue
            at = f"{at}/{part}"
            if any(f"{at}/".startswith(f"{point}/") for point in self._remote):
                return False
            target = _link(at)
            if target is None:
                continue
            links += 1
            if links > LINKS_MAX:
                return True  # because opening it fails at once and does not hang
            at = "" if target.startswith("/") else at.rpartition("/")[0]
            ahead += target.split("/")[::-1]
        return True

    def _read(self) -> None:
        chunks, offset = [], 0
        while chunk := os.pread(self._fd, 1 << 16, offset):
            chunks.append(chunk)
            offset += len(chunk)
        self._remote = tuple(remote_points(os.fsdecode(b"".join(chunks)).splitlines()))


def remote_points(lines: Iterable[str]) -> Iterable[str]:
    """Return the mount points of file systems that may hang, from the lines of mountinfo (see proc(5)).

    The root is "". A local file system below such a mount point counts as one that may hang, because its path
    leads through that mount point.
    """
    for line in lines:
        place, _, kind = line.partition(" - ")
        point = _plain(place.split(" ")[4]).rstrip("/")
        if kind.partition(" ")[0] not in LOCAL and not point.startswith(KERNELS_OWN):
            yield point


def _plain(escaped: str) -> str:
    """Decode a path of the table, which has blanks and backslashes as octal numbers."""
    return re.sub(r"\\([0-7]{3})", lambda found: chr(int(found[1], 8)), escaped)


def _link(path: str) -> str | None:
    """Return the target of this symlink. None: the path is no symlink."""
    try:
        return os.readlink(path)
    except (OSError, ValueError):
        return None


def which(name: str, search: str) -> str | None:
    """Return the path of this program in the folders of a ``PATH`` that cannot hang. None: not found."""
    near = (folder for folder in search.split(os.pathsep) if is_local(os.path.join(folder, name)))
    return shutil.which(name, path=os.pathsep.join(near))


def program_of(name: str, search: str) -> str:
    """Return the path as ``which`` does. Raises FileNotFoundError."""
    program = which(name, search)
    if program is None:
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), name)
    return program


def is_local(path: str) -> bool:
    """Return whether this path lies on local disks, by this process's own table."""
    return _table().is_local(path)


def are_all_local() -> bool:
    return _table().are_all_local


@cache
def _table() -> Mounts:
    return Mounts()


def read_anew() -> None:
    """Forget the table, because this process is a fork that has closed its descriptors."""
    _table.cache_clear()
