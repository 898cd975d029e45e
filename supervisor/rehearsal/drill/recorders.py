"""Hooks that record when they begin and when they have ended.

Each hook of each node has a FIFO. A shell script writes a line there when the hook begins, and one with the
exit code when the hook ends. The kernel reports the end of the script by the end of the FIFO, also when the
script was killed. A release cannot overtake this report, because a supervisor learns of the end no earlier.

The drill makes a hook fail or hang by a file in the folder of cues. The first node whose hook finds the file
is the one that fails or hangs, until the file is removed.
"""

import asyncio
import os
import signal
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from supervisor.core.settings import HOOK_EVENTS, Command, Hook, ItemSettings

READ_BYTES = 65536
RUN, CHECK, FENCE = "run", "candidate_check", "fence"
ALWAYS_RECORDERS = ("on_lose_failure", FENCE)  # each may end a machine, which no rehearsal may do
FAIL, HANG = "fail", "hang"
SCRIPT = """\
#!/bin/sh
# FIFO CUES NODE PLACE [COMMAND...]: run the hook at PLACE of the item, and record its begin and its end.
fifo=$1 cue=$2/$4 node=$3 place=$4
shift 4
exec 9<>"$fifo"
why=${CONSUL_SUPERVISOR_REASON:--}
[ "$place" = fence ] && why=$CONSUL_SUPERVISOR_PREVIOUS_TARGET
echo "begin $$ $why" >&9
if [ -e "$cue" ]; then
    ln -s "$node" "$cue.node" 2>/dev/null
    if [ "$(readlink "$cue.node")" = "$node" ]; then
        if [ "$(cat "$cue")" = hang ]; then
            trap '' TERM
            exec sleep 86400
        fi
        echo "end 1" >&9
        exit 1
    fi
fi
if [ $# -gt 0 ]; then
    trap : TERM # the command gets TERM, too, and this script waits until the command has ended
    "$@" 9>&-
    code=$?
elif [ "$place" = run ]; then
    exec sleep 86400
else
    code=0
fi
echo "end $code" >&9
exit $code
"""


@dataclass(slots=True)
class RecordedRun:
    """One attempt of one hook, or one life of the run child."""

    node: str
    place: str  # the list of the hook and its position there, as ``on_lose[0]``
    name: str  # the hook's name in the file
    reason: str  # of a fence: the machine that it is told to switch off
    pid: int
    began_at: float
    ended_at: float | None = None  # None: it still runs
    code: int | None = None  # the exit code. None: it still runs, or it was killed.

    @property
    def list(self) -> str:
        return self.place.partition("[")[0]

    @property
    def is_running(self) -> bool:
        return self.ended_at is None

    @property
    def succeeded(self) -> bool:
        return self.code == 0

    @property
    def has_failed(self) -> bool:
        return not self.is_running and not self.succeeded

    @property
    def ending(self) -> str:
        if self.is_running:
            return "still runs"
        return "ended by a signal" if self.code is None else f"exit {self.code}"


def with_hooks(item: ItemSettings, change: Callable[[Hook, str], Hook]) -> ItemSettings:
    """Return the item with each hook of its lists and its check changed. ``change`` gets the hook's place."""
    lists: dict[str, Any] = {
        name: tuple(change(hook, f"{name}[{position}]") for position, hook in enumerate(getattr(item, name)))
        for name in HOOK_EVENTS
    }
    check = item.candidate_check
    if check is not None and check.hook is not None:
        check = replace(check, hook=change(check.hook, CHECK))
    return replace(item, **lists, candidate_check=check)


class _Fifo:
    """The FIFO of one hook of one node, as a reader sees it."""

    def __init__(self, path: Path, node: str, place: str, name: str) -> None:
        os.mkfifo(path)
        path.chmod(0o622)  # for hooks of other users; only the folder's mode lets them in
        self._path = path
        self.node, self.place, self.name = node, place, name
        self.fd = self._opened()
        self.attempt: RecordedRun | None = None

    def _opened(self) -> int:
        return os.open(self._path, os.O_RDONLY | os.O_NONBLOCK)

    def reopen(self) -> None:
        """Open the FIFO again, because a reader at its end would be woken without a pause."""
        former, self.fd = self.fd, self._opened()
        os.close(former)


class Recorders:
    """The recorders of all hooks of all nodes."""

    def __init__(
        self,
        folder: Path,
        began: Callable[[RecordedRun], None],
        ended: Callable[[RecordedRun], None],
    ) -> None:
        self._folder, self._began, self._ended = folder, began, ended
        self._fifos: list[_Fifo] = []
        self._cues = folder / "cues"
        self._cues.mkdir()
        self._cues.chmod(0o733)  # a hook of another user links its node's name there
        self._script = folder / "recorder"
        self._script.write_text(SCRIPT)
        self._script.chmod(0o755)

    def close(self) -> None:
        """Kill what still runs, and stop reading."""
        self.kill_all()
        for fifo in self._fifos:
            asyncio.get_running_loop().remove_reader(fifo.fd)
            os.close(fifo.fd)
        self._fifos.clear()

    def kill_all(self, node: str | None = None) -> None:
        """Kill the process groups of the hooks that run. None: of every node."""
        self.drain()
        for fifo in self._fifos:
            if fifo.attempt is not None and node in (None, fifo.node):
                with suppress(ProcessLookupError, PermissionError):
                    os.killpg(fifo.attempt.pid, signal.SIGKILL)

    def cue(self, place: str, what: str) -> None:
        (self._cues / place).write_text(what)
        (self._cues / place).chmod(0o644)

    def clear(self, place: str) -> None:
        (self._cues / place).unlink(missing_ok=True)
        (self._cues / f"{place}.node").unlink(missing_ok=True)

    def recorded(self, item: ItemSettings, node: str, *, real: bool) -> ItemSettings:
        """Return the item with recorders for its hooks. ``real``: they run the commands of the file."""

        def recorder(hook: Hook, place: str) -> Hook:
            runs = real and not place.startswith(ALWAYS_RECORDERS)
            return replace(hook, call=self._command(hook.call, node, place, hook.name, runs))

        run, fence = item.run, item.fence
        if run is not None:
            run = replace(run, command=self._command(run.command, node, RUN, RUN, real))
        if fence is not None:
            fence = replace(fence, hook=recorder(fence.hook, FENCE), others=())
        return replace(with_hooks(item, recorder), run=run, fence=fence)

    def _command(self, call: object, node: str, place: str, name: str, real: bool) -> Command:
        """Return the command of a recorder.

        A webhook is never sent, because its receiver would take a rehearsal for an event.
        """
        path = self._folder / f"{node}.{place}"
        fifo = _Fifo(path, node, place, name)
        self._fifos.append(fifo)
        asyncio.get_running_loop().add_reader(fifo.fd, self._read, fifo)
        argv = ("/bin/sh", str(self._script), str(path), str(self._cues), node, place)
        if not isinstance(call, Command):
            return Command(argv, kill_after_s=0.0)
        if real:
            return replace(call, argv=(*argv, *call.argv))
        return Command(argv, kill_after_s=call.kill_after_s)

    def drain(self) -> None:
        for fifo in self._fifos:
            self._read(fifo)

    def _read(self, fifo: _Fifo) -> None:
        content, is_over = _content(fifo.fd)
        for line in content.decode(errors="replace").splitlines():
            self._take(fifo, line)
        if not is_over:
            return
        if fifo.attempt is not None:
            self._end(fifo)
        loop = asyncio.get_running_loop()
        loop.remove_reader(fifo.fd)
        fifo.reopen()
        loop.add_reader(fifo.fd, self._read, fifo)

    def _take(self, fifo: _Fifo, line: str) -> None:
        what, number, *reason = line.split()
        if what == "begin":
            if fifo.attempt is not None:
                self._end(fifo)
            hook = fifo.node, fifo.place, fifo.name
            fifo.attempt = RecordedRun(*hook, " ".join(reason), int(number), time.monotonic())
            self._began(fifo.attempt)
        elif fifo.attempt is not None:
            fifo.attempt.code = int(number)

    def _end(self, fifo: _Fifo) -> None:
        attempt, fifo.attempt = fifo.attempt, None
        assert attempt is not None
        attempt.ended_at = time.monotonic()
        self._ended(attempt)


def _content(fd: int) -> tuple[bytes, bool]:
    """Return what a FIFO holds now, and whether no process has it open for writing any more."""
    content = b""
    with suppress(BlockingIOError):
        while part := os.read(fd, READ_BYTES):
            content += part
        return content, True
    return content, False
