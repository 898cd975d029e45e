"""Which node accepted writes, and when: the tests of databases judge by this."""

from collections.abc import Sequence
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
