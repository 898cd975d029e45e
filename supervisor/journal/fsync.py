"""Forces files to disk by a child, while no part of this process waits for it.

Records survive our own crash without it. The child only shortens the time in which a loss of power could take
a record back. A disk that hangs therefore hangs that child and nothing else, and there is never more than
one.
"""

import asyncio
import os
import subprocess
from pathlib import Path

from supervisor.filesystem.mounts import is_local

DELAY_S = 0.05  # the hook that waits for the record begins first, and one child serves several records
PROGRAM = "sync"  # of coreutils


class Flush:
    """The paths that have changed, and the child that syncs them in the background."""

    def __init__(self) -> None:
        self._wanted: set[Path] = set()
        self._timer: asyncio.TimerHandle | None = None
        self._child: subprocess.Popen[bytes] | None = None
        self._pidfd = -1

    def want(self, path: Path) -> None:
        """Sync this file soon, because it has changed."""
        self._wanted.add(path)
        if self._timer is None and self._child is None:
            self._timer = asyncio.get_running_loop().call_later(DELAY_S, self._begin)

    def close(self) -> None:
        """Stop without waiting. A child that still writes ends by itself."""
        if self._timer is not None:
            self._timer.cancel()
        if self._child is not None:
            self._forget()

    def _begin(self) -> None:
        self._timer = None
        paths = [path for path in self._wanted if is_local(str(path)) and path.exists()]
        self._wanted.clear()
        if not paths:
            return
        null = subprocess.DEVNULL
        try:
            self._child = subprocess.Popen(
                [PROGRAM, "--data", "--", *paths],
                stdin=null,
                stdout=null,
                stderr=null,
                env={"PATH": os.defpath},
                process_group=0,
            )
            self._pidfd = os.pidfd_open(self._child.pid)
        except OSError:
            self._child = None
            return  # no such program, or no room for a child: the kernel writes the files out by itself
        asyncio.get_running_loop().add_reader(self._pidfd, self._ended)

    def _ended(self) -> None:
        self._forget()
        if self._wanted:
            self._begin()

    def _forget(self) -> None:
        assert self._child is not None
        asyncio.get_running_loop().remove_reader(self._pidfd)
        os.close(self._pidfd)
        if self._child.poll() is None:
            self._child.returncode = 0  # so that Popen does not wait for it: process 1 reaps it later
        self._child = None
