"""When children lived, by their stamps."""

from dataclasses import dataclass

STILL_ALIVE_S = 0.5  # ten missing stamps: the child stood still, or has ended


@dataclass(frozen=True, slots=True)
class Life:
    """A child from its first stamp to its last one, in seconds of CLOCK_BOOTTIME."""

    node: str
    pid: int
    begin: float
    end: float


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
