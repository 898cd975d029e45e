"""Reads a file by a child with a time limit, because its file system may not answer.

For what lies on no disk of this machine: the child hangs in our place. It is coreutils' ``head``. There is
one child for each path at most, as long as its owner keeps one ``Reader`` for it.
"""

import errno
import os
import re

from supervisor.filesystem.children import WITHIN_S, Child, NoAnswer
from supervisor.filesystem.mounts import is_local

PROGRAM = "/usr/bin/head"
_CODES = {os.strerror(code): code for code in errno.errorcode}


class FileReader(Child):
    """A child that reads the first bytes of a file. When it has ended, ``content`` is due."""

    def __init__(self, path: str, bytes_max: int) -> None:
        """Raises OSError when no child can be started, and NoAnswer when too many hang already."""
        super().__init__(path, lambda out, err: _started(path, bytes_max, out, err))

    def content(self) -> bytes:
        """Return what the child has read. Raises OSError as reading the file here would."""
        if self.wait() == 0:
            return self.result()
        why = re.split(r": ", self.error())[-1]
        raise OSError(_CODES.get(why, errno.EIO), why or "it cannot be read", self.path)


def read_within(path: str, bytes_max: int, within_s: float = WITHIN_S) -> bytes:
    """Wait for the first bytes of the file. Raises OSError, which is NoAnswer when time is up."""
    reader = FileReader(path, bytes_max)
    try:
        if not reader.within(within_s):
            raise NoAnswer(path, within_s)
        return reader.content()
    finally:
        reader.close()


async def read(path: str, bytes_max: int, within_s: float = WITHIN_S) -> bytes:
    """Wait for the first bytes of the file, while the loop goes on. Raises OSError, which is NoAnswer when
    time is up."""
    reader = FileReader(path, bytes_max)
    try:
        if not await reader.comes_to_end(within_s):
            raise NoAnswer(path, within_s)
        return reader.content()
    finally:
        reader.close()


class Pulse:
    """Whether the file system of a path answers: asked by a child, of which there is one at most, unless
    it is a disk of this machine."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._reader: FileReader | None = None

    def check(self, within_s: float) -> None:
        """Raises NoAnswer: after this time, or at once while an earlier question has no answer yet. Raises
        another OSError when nobody can be asked."""
        if self._reader is None:
            if is_local(self._path):
                return
            self._reader = FileReader(self._path, 1)
            self._reader.within(within_s)
        if not self._reader.ended:
            raise NoAnswer(self._path, within_s)
        self.close()

    def close(self) -> None:
        """Close the question, because nobody waits for its answer any more."""
        if self._reader is not None:
            self._reader.close()
        self._reader = None


def await_answer(path: str, within_s: float) -> None:
    """Wait until the file system of the path says whether something is there, and what.

    A path on a disk of this machine is not waited for. Raises NoAnswer when the time is up.
    """
    if is_local(path):
        return
    try:
        read_within(path, 1, within_s)
    except NoAnswer:
        raise
    except OSError:
        pass  # an error is an answer, too


def _started(path: str, bytes_max: int, out: int, err: int) -> int:
    actions = [
        (os.POSIX_SPAWN_OPEN, 0, "/dev/null", os.O_RDONLY, 0),
        (os.POSIX_SPAWN_DUP2, out, 1),
        (os.POSIX_SPAWN_DUP2, err, 2),
    ]
    argv = [PROGRAM, "-c", str(bytes_max), "--", path]
    return os.posix_spawn(PROGRAM, argv, {"LC_ALL": "C"}, file_actions=actions, setpgroup=0)
