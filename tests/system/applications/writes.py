"""Who took writes, and when: what the tests of databases judge by."""

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Write:
    """One that a node took, at some moment between these two."""

    node: str
    sent: float
    replied: float


def tenures(of_nodes: Sequence[Sequence[Write]]) -> list[str]:
    """The nodes that took writes, in that order; AssertionError when one took any after another had begun to.

    A write was taken after it was sent and before its reply came. So one that was sent after another
    node's first was replied to was surely taken later than that.
    """
    taken = sorted((writes for writes in of_nodes if writes), key=lambda writes: writes[0].replied)
    for former, latter in zip(taken, taken[1:], strict=False):
        first, last = latter[0], former[-1]
        assert last.sent <= first.replied, f"{last.node} took {last} after {first.node} had taken {first}"
    return [writes[0].node for writes in taken]


class Background:
    """A step that is repeated in a thread of its own from ``start`` to ``end``."""

    def __init__(self, step: Callable[[], None], close: Callable[[], None]) -> None:
        self._step = step
        self._close = close
        self._over = threading.Event()
        self._executor = ThreadPoolExecutor(1)
        self._running: Future[None] | None = None

    def _run(self) -> None:
        try:
            while not self._over.is_set():
                self._step()
        finally:
            self._close()

    def start(self) -> None:
        """Begin."""
        self._running = self._executor.submit(self._run)

    def end(self) -> None:
        """Finish the step; raises what ended it before."""
        self._over.set()
        self._executor.shutdown()
        if self._running is not None:
            self._running.result()
