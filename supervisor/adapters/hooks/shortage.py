"""The means that the start of a hook may lack for a moment, and those kept back for hooks that end a tenure.

A shortage of descriptors, processes or memory, and a program that is being copied, are often over within a
second, so such a start is tried again. Descriptors are kept open for on_lose and on_lose_failure. Processes
and memory cannot be kept.
"""

import errno
import os
from contextlib import suppress

PASSING = frozenset({errno.EMFILE, errno.ENFILE, errno.EAGAIN, errno.ENOMEM, errno.ETXTBSY})
NO_DESCRIPTORS = (errno.EMFILE, errno.ENFILE)
RETRY_PAUSE_S = 0.05  # between two tries of a start: a twentieth of the shortest usual timeout
SPARE = 32  # descriptors: at most 10 during a start, and 3 for each of 7 hooks that run side by side


def is_passing(error: BaseException | None) -> bool:
    """Return whether a start that failed by this error may succeed a moment later."""
    return isinstance(error, OSError) and error.errno in PASSING


def lacks_descriptors(error: BaseException | None) -> bool:
    return isinstance(error, OSError) and error.errno in NO_DESCRIPTORS


class Spare:
    """Open descriptors, SPARE of them, that serve only to be closed when others are needed."""

    def __init__(self) -> None:
        self._fds: list[int] = []
        self.fill()

    def fill(self) -> None:
        """Open descriptors up to SPARE, or up to the limit of the system."""
        with suppress(OSError):
            while len(self._fds) < SPARE:
                self._fds.append(os.open("/dev/null", os.O_RDONLY | os.O_CLOEXEC))

    def release(self) -> None:
        """Close all descriptors, until ``fill`` opens them again."""
        while self._fds:
            os.close(self._fds.pop())
