"""Which node accepted writes, and when: the tests of databases judge by this."""

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Write:
    """A write that a node accepted at some moment between ``sent`` and ``replied``."""

    node: str
    sent: float
    replied: float


def tenures(of_nodes: Sequence[Sequence[Write]]) -> list[str]:
    """Return the nodes that accepted writes, in order; raise AssertionError when two of them did so at once.

    A write was accepted after it was sent and before its reply came. So a write that was sent after another
    node's first reply was surely accepted later than that node's write.
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
        """Start the thread."""
        self._running = self._executor.submit(self._run)

    def end(self) -> None:
        """Finish the step and the thread; raise the error that ended the thread earlier."""
        self._over.set()
        self._executor.shutdown()
        if self._running is not None:
            self._running.result()
