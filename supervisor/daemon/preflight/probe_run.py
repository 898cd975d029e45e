"""Makes all probes of a configuration, each answered once, while the loop goes on.

A probe may hang on a file system that does not answer, or on a directory of users that is out of reach. So a
child makes the probes in their order, and when it has stood still for ``STALL_S`` another child goes on with
the rest. A probe without an answer in time is reported as a fault.
"""

import asyncio
import json
import os
from collections.abc import Awaitable, Callable, Sequence
from contextlib import closing
from functools import partial

from supervisor.adapters.filesystem.forked import forked, reap, write
from supervisor.daemon.preflight.probes import Fault, FileProbe, Probe, faults_of

PROBE_S = 5.0  # a probe without an answer by then is a fault; a file system that answers takes milliseconds
STALL_S = 0.25  # a probe takes microseconds; within PROBE_S this allows twenty children
CHILDREN = "the needs of hooks"  # the name of all children, because few of them may hang at a time
HANGS = "see whether its file system or the directory of users answers"

Answer = tuple[int, list[Fault]]
"""The index of a probe, and its faults."""


async def make_probes(
    probes: Sequence[Probe],
    answered: Callable[[list[Answer]], Awaitable[None]],
    *,
    strict: bool,
    within_s: float,
) -> None:
    """Make the probes, and call ``answered`` with each batch of answers as they come.

    strict: as in ``faults_of``.
    Raises ChildFailed, NoAnswer when too many earlier children hang, and another OSError when no child can
    be started.
    """
    loop = asyncio.get_running_loop()
    ends_at = loop.time() + within_s
    open_probes, order = set(range(len(probes))), list(range(len(probes)))
    workers: list[_Worker] = []  # all but the newest stand still
    try:
        while open_probes and (left_s := ends_at - loop.time()) > 0:
            if order:
                workers.append(_Worker(probes, order, within_s, strict=strict))
            newest, order = workers[-1], []
            ended = await newest.child.comes_to_end(min(left_s, STALL_S))
            new = {
                index: faults for each in workers for index, faults in each.answers() if index in open_probes
            }
            open_probes -= new.keys()
            if ended:
                workers.pop()
                newest.end()
            elif not new:
                # A child that has made all its probes may still be about to end, on a machine short of time.
                standing = [probes[each.left[0]] for each in workers if each.left]
                bad = {folder for probe in standing for folder in _folders(probe)}
                order = [index for index in newest.left[1:] if index in open_probes]
                order.sort(key=lambda index: not bad.isdisjoint(_folders(probes[index])))
            await answered(list(new.items()))
        if open_probes:
            await answered([(index, _hangs(probes[index], within_s)) for index in sorted(open_probes)])
    finally:
        for worker in workers:
            worker.child.close()


class _Worker:
    """A child that makes probes one after another. ``left``: those without an answer yet, in their order."""

    def __init__(self, probes: Sequence[Probe], order: list[int], within_s: float, *, strict: bool) -> None:
        self.left = order
        self._read = 0  # lines of its result
        self.child = forked(CHILDREN, partial(_work, probes, order, strict), within_s)

    def answers(self) -> list[Answer]:
        """Return the answers that the child has written since the last call."""
        lines = self.child.result().split(b"\n")[self._read : -1]
        self._read += len(lines)
        answered, self.left = self.left[: len(lines)], self.left[len(lines) :]
        return list(zip(answered, map(json.loads, lines), strict=True))

    def end(self) -> None:
        """Reap the child, which has ended. Raises ChildFailed when it has not made all its probes."""
        with closing(self.child):
            reap(self.child, "the process that looks")


def _work(probes: Sequence[Probe], order: list[int], strict: bool, out: int) -> None:
    for index in order:
        write(out, json.dumps(faults_of(probes[index], strict)).encode() + b"\n")


def _folders(probe: Probe) -> set[str]:
    if isinstance(probe, FileProbe):
        return {os.path.dirname(probe.name)}
    return {os.path.dirname(probe.script or probe.program), probe.cwd or ""} - {""}


def _hangs(probe: Probe, within_s: float) -> list[Fault]:
    name = probe.name if isinstance(probe, FileProbe) else probe.script or probe.program
    return [("", f"{name} did not answer within {within_s:g} s", HANGS)]
