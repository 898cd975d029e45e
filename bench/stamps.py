"""Reads what the stamp program wrote: who began and ended what, in nanoseconds of CLOCK_MONOTONIC."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

LOOK_EVERY_S = 0.05  # seldom, so that the observer takes no CPU from what it observes
PATIENCE_S = 60.0


@dataclass(frozen=True, slots=True)
class Stamp:
    """``who`` is the contender, ``what`` is acquire, lose or child, ``edge`` is begin or end."""

    who: str
    what: str
    edge: str
    at_ns: int


class Stamps:
    """One file of stamps, which any number of processes append to."""

    def __init__(self, path: Path) -> None:
        self.path = path
        path.touch()

    def mark(self) -> int:
        """Where the file ends now, for ``since``."""
        return self.path.stat().st_size

    def since(self, mark: int) -> list[Stamp]:
        """The whole lines after ``mark``, in the order of their writing."""
        with self.path.open("rb") as file:
            file.seek(mark)
            lines = file.read().split(b"\n")[:-1]
        return [Stamp(who, what, edge, int(at)) for who, what, edge, at in map(_words, lines)]

    def wait(self, mark: int, wanted: Callable[[Stamp], bool]) -> Stamp:
        """The first such stamp after ``mark``; TimeoutError when it does not come."""
        give_up_at = time.monotonic() + PATIENCE_S
        while time.monotonic() < give_up_at:
            if found := next(filter(wanted, self.since(mark)), None):
                return found
            time.sleep(LOOK_EVERY_S)
        raise TimeoutError(f"no stamp within {PATIENCE_S:g} s")


def _words(line: bytes) -> list[str]:
    return line.decode().split(" ")
