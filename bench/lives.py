"""Seconds of double holding and of needless loss, computed from the stamps of children.

The functions here are pure.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

STILL_ALIVE_S = 0.5  # ten missing stamps: the child stood still, or has ended
STILL_HELD_S = 0.5  # after this time the session on the key shows whether Consul or the tool had given up


@dataclass(frozen=True, slots=True)
class Life:
    """A child from its first stamp to its last one, in seconds of CLOCK_BOOTTIME."""

    node: str
    pid: int
    begin: float
    end: float


@dataclass(frozen=True, slots=True)
class Look:
    """The session on Consul's key at one moment: blank for none, None when Consul did not answer."""

    at: float
    session: str | None


def lives(text: str) -> list[Life]:
    """Return all lives by their begin; a child that paused for longer than STILL_ALIVE_S has several."""
    found: list[Life] = []
    newest: dict[int, Life] = {}
    for line in text.splitlines(keepends=True):
        if not line.endswith("\n"):
            continue
        node, pid, at = line.split()
        life = newest.get(int(pid))
        if life is not None and float(at) - life.end > STILL_ALIVE_S:
            found.append(life)
            life = None
        newest[int(pid)] = Life(node, int(pid), life.begin if life else float(at), float(at))
    return sorted((*found, *newest.values()), key=lambda life: life.begin)


def double_s(alive: Iterable[Life]) -> float:
    """Return for how long two or more children were alive at once."""
    return sum(end - begin for begin, end, count in _counts(alive) if count > 1)


def gaps(alive: Iterable[Life]) -> list[tuple[float, float]]:
    """Return the times between two lives in which no child was alive."""
    return [(begin, end) for begin, end, count in _counts(alive) if count == 0]


def needless_s(alive: Sequence[Life], looks: Sequence[Look]) -> float:
    """Return the length of all gaps that the tool and not Consul has caused.

    A gap is needless when the key showed a session before the last child stopped, and showed an equal one
    STILL_HELD_S later. Then Consul had taken nothing away, and the tool gave up by itself.
    """
    total_s = 0.0
    for begin, end in gaps(alive):
        before = [look.session for look in looks if look.at <= begin and look.session is not None]
        after = [
            look.session for look in looks if look.at >= begin + STILL_HELD_S and look.session is not None
        ]
        if before and after and before[-1] and before[-1] == after[0]:
            total_s += end - begin
    return total_s


def _counts(alive: Iterable[Life]) -> Iterator[tuple[float, float, int]]:
    """Yield (begin, end, how many were alive), from the first begin to the last end."""
    edges = sorted(edge for life in alive for edge in ((life.begin, 1), (life.end, -1)))
    count = 0
    for (at, change), (following, _) in zip(edges, edges[1:], strict=False):
        count += change
        if following > at:
            yield at, following, count
