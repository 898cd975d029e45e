"""Troubles beside a supervisor's elections, which begin and end on demand.

The hooks belong to observers in the supervisor's own file: writing the value of an observed key starts its
on_change. A hook is `sleep`, a webhook to a socket that accepts no connection, or a program that prints a
thousand lines a second. The log is a named pipe, which is read or not. ``state_dir`` is a file system of its
own in a mount namespace of the supervisor, so that it disappears with the supervisor.
"""

import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.lab import Rig
from tests.support.consul import HOST, Agent

BESIDE = 4  # hooks that block or hang at the same time
TIMEOUT_S = 1.5  # of these hooks, so that they time out several times in a spell
LINES_A_SECOND = 1000
DISK = "32m"  # room for all records many times over
READ_EVERY_S = 0.02
PART_BYTES = 1024  # of one write that fills a pipe or a disk
KEYS = "bench/slow/observed/"
BLOCKS, HANGS, FLOODS = "blocks", "hangs", "floods"
NAMESPACE = ("unshare", "--mount", "--propagation", "private")
ON_OWN_DISK = 'mount -t tmpfs -o size="$0" tmpfs "$1" && log="$2" && shift 2 && exec "$@" 2>"$log"'
ON_OUR_DISK = 'exec "$@" 2>"$0"'
FLOOD = """
import os, sys, time
began, said = time.monotonic(), 0
while (now := time.monotonic() - began) < float(sys.argv[1]):
    due = int(now * int(sys.argv[2]))
    os.write(1, b"a line of a length that is usual for what a hook writes\\n" * (due - said))
    said = due
    time.sleep(0.002)
"""


@dataclass(frozen=True, slots=True)
class Trouble:
    """One kind of trouble.

    within: returns a context in which the trouble lasts.
    again: to be called now and then in that context.
    may_lead: whether the supervisor can hold an election meanwhile.
    """

    name: str
    within: Callable[[], AbstractContextManager[object]]
    again: Callable[[], object] = lambda: None
    may_lead: bool = True  # only a supervisor that can write a record may lead


class Troubles:
    """The troubles of one supervisor, whose file must have ``observers`` and ``state_dir``, and whose command
    line must be that of ``started``."""

    def __init__(self, rig: Rig, agent: Agent, exits: ExitStack, flood_s: float) -> None:
        """Prepare the troubles. ``flood_s``: how long a flood of lines lasts."""
        self._agent = agent
        self._session = agent.session_create(TTL="3600s")
        self._touched_at = -TIMEOUT_S
        self._deaf = exits.enter_context(socket.create_server((HOST, 0), backlog=1024))
        self._pipe = Pipe(rig.folder / "log.fifo")
        exits.callback(self._pipe.close)
        self._flood_s = flood_s
        self.pid = 0  # of the supervisor, set by the caller that starts it
        self.state_dir = rig.folder / "disk"
        self.state_dir.mkdir()
        self.own_disk = subprocess.run([*NAMESPACE, "true"], check=False, capture_output=True).returncode == 0
        for name in self.observers:
            agent.acquire(KEYS + name, self._session)

    @property
    def observers(self) -> dict[str, Any]:
        """The items whose on_change starts the hooks; they never contend."""
        limit = {"timeout": f"{TIMEOUT_S}s"}
        url = f"http://{HOST}:{self._deaf.getsockname()[1]}/"
        flood = [sys.executable, "-I", "-S", "-c", FLOOD, f"{self._flood_s:g}", str(LINES_A_SECOND)]
        hooks: dict[str, dict[str, Any]] = {
            **{f"{BLOCKS}{n}": {"exec": ["sleep", "3600"], **limit} for n in range(BESIDE)},
            **{f"{HANGS}{n}": {"webhook": url, **limit} for n in range(BESIDE)},
            FLOODS: {"exec": flood, "timeout": "1h"},
        }
        return {
            name: {"key": KEYS + name, "contend": False, "on_change": [hook]} for name, hook in hooks.items()
        }

    def started(self, argv: Sequence[str]) -> list[str]:
        """Return the command line that gives the supervisor its log and, as root, its disk."""
        log = str(self._pipe.path)
        if not self.own_disk:
            return ["sh", "-c", ON_OUR_DISK, log, *argv]
        return [*NAMESPACE, "sh", "-c", ON_OWN_DISK, DISK, str(self.state_dir), log, *argv]

    def all(self) -> Iterator[Trouble]:
        """Yield all troubles that are possible on this machine."""
        yield Trouble("hooks that block", self._hooks(BLOCKS), lambda: self._touch(BLOCKS))
        yield Trouble("webhooks that hang", self._hooks(HANGS), lambda: self._touch(HANGS))
        yield Trouble(f"a hook's {LINES_A_SECOND} lines/s", self._hooks(FLOODS))
        yield Trouble("a log that nobody reads", self._pipe.stuck)
        if self.own_disk:
            yield Trouble("a full disk", self._full_disk, may_lead=False)

    def _touch(self, kind: str) -> None:
        """Change the observed values so that their hooks run, at most once in TIMEOUT_S.

        More changes would not start more hooks, and each has a cost of its own.
        """
        now = time.monotonic()
        if now - self._touched_at < TIMEOUT_S:
            return
        self._touched_at = now
        for name in self.observers:
            if name.startswith(kind):
                self._agent.kv_put(KEYS + name, str(now).encode())

    def _hooks(self, kind: str) -> Callable[[], AbstractContextManager[None]]:
        @contextmanager
        def within() -> Iterator[None]:
            self._touch(kind)
            yield
            time.sleep(2 * TIMEOUT_S)  # for a hook that runs and for the next one, which waits

        return within

    @contextmanager
    def _full_disk(self) -> Iterator[None]:
        ballast = Path(f"/proc/{self.pid}/root{self.state_dir}/ballast")
        with ballast.open("wb", buffering=0) as file, suppress(OSError):
            while file.write(b"x" * PART_BYTES):
                pass
        try:
            yield
        finally:
            ballast.unlink()


class Pipe:
    """A named pipe at ``path``. A thread reads and discards its content, except within ``stuck``."""

    def __init__(self, path: Path) -> None:
        self.path = path
        os.mkfifo(path)
        self._fd = os.open(path, os.O_RDWR | os.O_NONBLOCK)  # also for writing, so that reading never ends
        self._flows = threading.Event()
        self._flows.set()
        self._over = False
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    @contextmanager
    def stuck(self) -> Iterator[None]:
        """Fill the pipe, and stop reading it within this context."""
        self._flows.clear()
        time.sleep(2 * READ_EVERY_S)
        with suppress(BlockingIOError):
            while os.write(self._fd, b"x" * PART_BYTES):
                pass
        try:
            yield
        finally:
            self._flows.set()

    def close(self) -> None:
        """End the reading."""
        self._over = True
        self._flows.set()
        self._reader.join()
        os.close(self._fd)

    def _read(self) -> None:
        while not self._over:
            self._flows.wait()
            with suppress(BlockingIOError):
                os.read(self._fd, 1 << 20)
            time.sleep(READ_EVERY_S)
