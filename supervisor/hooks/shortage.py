"""What the start of a hook may lack for a moment, and what is kept back for the hooks that end a tenure.

A shortage of descriptors, processes or memory, and a program that is being copied, are often over
within a second: such a start is tried again. Descriptors are kept open for on_lose and on_lose_failure;
processes and memory cannot be kept.
"""

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress

PASSING = frozenset({errno.EMFILE, errno.ENFILE, errno.EAGAIN, errno.ENOMEM, errno.ETXTBSY})
NO_DESCRIPTORS = (errno.EMFILE, errno.ENFILE)
RETRY_PAUSE_S = 0.05  # between two tries of a start: a twentieth of the shortest usual timeout
SPARE = 32  # descriptors: 10 for a start at its height, and 3 for each of 7 hooks that run side by side


def is_passing(error: BaseException | None) -> bool:
    """Tell whether the same start may succeed a moment later."""
    return isinstance(error, OSError) and error.errno in PASSING


def lacks_descriptors(error: BaseException | None) -> bool:
    """Whether descriptors are what is short."""
    return isinstance(error, OSError) and error.errno in NO_DESCRIPTORS


class Spare:
    """Open descriptors of no use but to be closed when others are needed. ``size``: how many to keep."""

    def __init__(self, size: int = SPARE) -> None:
        self._size = size
        self._fds: list[int] = []
        self.fill()

    def fill(self) -> None:
        """Open as many descriptors as there may be, up to ``size``."""
        with suppress(OSError):
            while len(self._fds) < self._size:
                self._fds.append(os.open("/dev/null", os.O_RDONLY | os.O_CLOEXEC))

    def release(self) -> None:
        """Free all descriptors until ``fill``."""
        while self._fds:
            os.close(self._fds.pop())

    @contextmanager
    def released(self) -> Iterator[None]:
        """Free the descriptors within this block."""
        self.release()
        try:
            yield
        finally:
            self.fill()
