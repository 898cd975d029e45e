"""Files read by a child with a time limit, because their file system may not answer.

The child is coreutils' ``head``, which may hang in our place. A path has at most one child at a time if its
owner keeps one ``FileReader`` or one ``Pulse`` for it.
"""

import errno
import os
from collections.abc import Iterator
from contextlib import closing, contextmanager
from functools import partial

from supervisor.adapters.filesystem.children import WITHIN_S, Child, NoAnswer, spawn
from supervisor.adapters.filesystem.mounts import is_local

PROGRAM = "/usr/bin/head"
_CODES = {os.strerror(code): code for code in errno.errorcode}


class FileReader(Child):
    """A child that reads the first bytes of a file."""

    def __init__(self, path: str, bytes_max: int) -> None:
        argv = [PROGRAM, "-c", str(bytes_max), "--", path]
        super().__init__(path, partial(spawn, argv, {"LC_ALL": "C"}))

    def content(self) -> bytes:
        """Return what was read, once the child has ended. Raises OSError as reading would."""
        if self.wait() == 0:
            return self.result()
        why = self.error().rpartition(": ")[2]
        raise OSError(_CODES.get(why, errno.EIO), why or "it cannot be read", self.path)


def read_within(path: str, bytes_max: int, within_s: float = WITHIN_S) -> bytes:
    """Return the first bytes of the file. Raises OSError, which is NoAnswer when the time is up."""
    with closing(FileReader(path, bytes_max)) as reader:
        if not reader.within(within_s):
            raise NoAnswer(path, within_s)
        return reader.content()


async def read(path: str, bytes_max: int, within_s: float = WITHIN_S) -> bytes:
    """Return the first bytes of the file as ``read_within`` does, while the loop runs on."""
    with closing(FileReader(path, bytes_max)) as reader:
        if not await reader.comes_to_end(within_s):
            raise NoAnswer(path, within_s)
        return reader.content()


class Pulse:
    """The check whether the file system of a path answers, by at most one child at a time."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._reader: FileReader | None = None

    def check(self, within_s: float) -> None:
        """Return when the file system answers, or at once for a path on a local disk.

        Raises NoAnswer when there is no answer within this time, and at once while an earlier child waits
        for its answer. Raises another OSError when no child can be started.
        """
        if self._reader is None:
            if is_local(self._path):
                return
            self._reader = FileReader(self._path, 1)
            self._reader.within(within_s)
        if not self._reader.ended:
            raise NoAnswer(self._path, within_s)
        self.close()

    def close(self) -> None:
        """Kill the child, if any, because the answer is no longer needed."""
        if self._reader is not None:
            self._reader.close()
        self._reader = None


def await_answer(path: str, within_s: float) -> None:
    """Wait until the file system of the path answers, with content or with an error.

    For a path on a local disk this returns at once. Raises NoAnswer when the time is up.
    """
    if not is_local(path):
        with _error_is_answer():
            read_within(path, 1, within_s)


async def answer_of(path: str, within_s: float) -> None:
    """Wait as ``await_answer`` does, while the loop runs on. Raises NoAnswer when the time is up."""
    if not is_local(path):
        with _error_is_answer():
            await read(path, 1, within_s)


@contextmanager
def _error_is_answer() -> Iterator[None]:
    try:
        yield
    except NoAnswer:
        raise
    except OSError:
        pass
