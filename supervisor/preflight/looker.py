"""The program that looks whether commands can start on this machine, and whether files can be read.

The program imports little, because a node that starts waits for its answers. It reads one question from
standard input, by ``marshal`` because the same version of Python has written it, and writes one line of JSON
for each look. A look may hang on a file system that does not answer, or on a directory of users that is out
of reach. So worker processes make the looks in their order, and when a worker has stood still for ``STALL_S``
another worker goes on with the rest. A look without an answer in time is reported as a fault.

The program must never change anything, and must never show the content of a file.
"""

from __future__ import annotations

import marshal
import os
import select
import sys
import time

from supervisor.preflight.looks import faults_of, in_child

TYPE_CHECKING = False  # importing typing takes longer than all looks
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from supervisor.preflight.looks import Fault, Look

KILL = 9
STALL_S = 0.25  # a look takes microseconds; within LOOK_S this allows twenty workers
ANSWERS = 1  # the descriptor of standard output
HANGS = "see whether its file system or the directory of users answers"


def main() -> None:
    """Answer the question on standard input."""
    asked = marshal.loads(sys.stdin.buffer.read())
    if "file_modes" in asked:
        _answer_file_modes(asked["file_modes"])
    else:
        Looks(asked["looks"], asked["within_s"], strict=asked["strict"]).answer()


def _answer_file_modes(question: dict[str, Any]) -> None:
    from supervisor.check.file_modes import answer

    for problem in answer(question):
        _write(ANSWERS, [problem.file, problem.path, problem.message])


def _write(fd: int, value: object) -> None:
    import json  # imported here, because only a fault needs it

    _send(fd, json.dumps(value).encode() + b"\n")


def _answer(fd: int, index: int, faults: list[Fault]) -> None:
    if faults:
        _write(fd, [index, faults])
    else:
        _send(fd, b"[%d, []]\n" % index)


def _send(fd: int, text: bytes) -> None:
    while text:
        text = text[os.write(fd, text) :]


# --- workers -------------------------------------------------------------------------------------


class Worker:
    """A process that makes looks one after another.

    left: the looks without an answer yet, in their order.
    moved_at: when the newest answers came, by the monotonic clock.
    """

    def __init__(self, looks: Sequence[Look], order: list[int], *, strict: bool) -> None:
        self.left = list(order)
        self.moved_at = time.monotonic()
        self.fd, theirs = os.pipe()
        self._buffer = b""
        self.pid = os.fork()
        if self.pid == 0:
            _hush()
            in_child(lambda: self._work(looks, theirs, strict))
        os.close(theirs)

    def _work(self, looks: Sequence[Look], fd: int, strict: bool) -> None:
        for index in self.left:
            _answer(fd, index, faults_of(looks[index], strict))

    def read(self) -> list[tuple[int, bytes]] | None:
        """Return each look that was answered, with its answer. None: the worker has ended."""
        content = os.read(self.fd, 65536)
        if not content:
            return None
        *lines, self._buffer = (self._buffer + content).split(b"\n")
        answered, self.left = self.left[: len(lines)], self.left[len(lines) :]
        self.moved_at = time.monotonic()
        return list(zip(answered, lines, strict=True))

    def end(self) -> None:
        """Kill the worker without waiting for its end, because it may hang even then."""
        os.close(self.fd)
        os.kill(self.pid, KILL)


class Looks:
    """All looks of one question, each answered exactly once on standard output."""

    def __init__(self, looks: Sequence[Look], within_s: float, *, strict: bool) -> None:
        self._looks = looks
        self._within_s = within_s
        self._strict = strict
        self._open = dict.fromkeys(range(len(looks)))
        self._poll = select.poll()
        self._workers: dict[int, Worker] = {}
        self._front: Worker | None = None  # the newest worker. All other workers stand still.

    def answer(self) -> None:
        """Answer every look. A look without an answer after ``within_s`` is answered by a fault."""
        ends_at = time.monotonic() + self._within_s
        self._go_on(list(self._open))
        while self._open and (left_s := ends_at - time.monotonic()) > 0:
            for fd, _ in self._poll.poll(min(left_s, STALL_S) * 1000):
                self._read(self._workers[fd])
            self._look_after_front()
        for index in self._open:
            why = f"{_what(self._looks[index])} did not answer within {self._within_s:g} s"
            _write(ANSWERS, [index, [("", why, HANGS)]])
        if self._workers:
            os.killpg(0, KILL)  # also processes that the workers have started as another user

    def _go_on(self, order: list[int]) -> None:
        self._front = None
        if order:
            self._front = worker = Worker(self._looks, order, strict=self._strict)
            self._workers[worker.fd] = worker
            self._poll.register(worker.fd, select.POLLIN)

    def _read(self, worker: Worker) -> None:
        answers = worker.read()
        for index, line in answers or ():
            if index in self._open:
                del self._open[index]
                _send(ANSWERS, line + b"\n")
        if answers is None or not worker.left or worker is not self._front:
            self._end(worker, died=answers is None and bool(worker.left))

    def _end(self, worker: Worker, *, died: bool) -> None:
        self._poll.unregister(worker.fd)
        del self._workers[worker.fd]
        worker.end()
        os.waitpid(worker.pid, os.WNOHANG)
        if died and worker.left[0] in self._open:
            del self._open[worker.left[0]]
            _write(
                ANSWERS,
                [worker.left[0], [("", f"cannot look at {_what(self._looks[worker.left[0]])}", HANGS)]],
            )
        if worker is self._front:
            self._go_on([index for index in worker.left if index in self._open])

    def _look_after_front(self) -> None:
        """Let another worker go on if the newest stands still. Looks at the folders that hang come last."""
        front = self._front
        if front is None or time.monotonic() - front.moved_at < STALL_S:
            return
        bad = {folder for each in self._workers.values() for folder in _folders(self._looks[each.left[0]])}
        rest = [index for index in front.left[1:] if index in self._open]
        self._go_on(sorted(rest, key=lambda index: not bad.isdisjoint(_folders(self._looks[index]))))


def _hush() -> None:
    """Write to /dev/null from now on, so that a worker that hangs does not keep this program's pipes open."""
    null = os.open(os.devnull, os.O_RDWR)
    os.dup2(null, ANSWERS)
    os.dup2(null, 2)


def _folders(look: Look) -> set[str]:
    names = (look.get("file"), look.get("folder"), look.get("program"))
    return {os.path.dirname(name) for name in names if name and "/" in name} | {look.get("cwd") or ""} - {""}


def _what(look: Look) -> str:
    return str(look.get("file") or look.get("folder") or look["program"])
