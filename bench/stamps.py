"""The stamps that the stamp program writes: begins and ends of hooks, in ns of CLOCK_MONOTONIC."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

LOOK_EVERY_S = 0.05  # seldom, so that the bench takes no CPU from the contenders
PATIENCE_S = 60.0


@dataclass(frozen=True, slots=True)
class Stamp:
    """One line of the file.

    who: the name of the contender.
    what: "acquire", "lose" or "child".
    edge: "begin" or "end".
    at_ns: the time in nanoseconds of CLOCK_MONOTONIC.
    """

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
        """Return the present end of the file, for ``since``."""
        return self.path.stat().st_size

    def since(self, mark: int) -> list[Stamp]:
        """Return the stamps after ``mark``, in the order of their writing."""
        with self.path.open("rb") as file:
            file.seek(mark)
            lines = file.read().split(b"\n")[:-1]
        return [Stamp(who, what, edge, int(at)) for who, what, edge, at in map(_words, lines)]

    def wait(self, mark: int, wanted: Callable[[Stamp], bool]) -> Stamp:
        """Return the first ``wanted`` stamp after ``mark``. Raises TimeoutError after PATIENCE_S."""
        give_up_at = time.monotonic() + PATIENCE_S
        while time.monotonic() < give_up_at:
            if found := next(filter(wanted, self.since(mark)), None):
                return found
            time.sleep(LOOK_EVERY_S)
        raise TimeoutError(f"no stamp within {PATIENCE_S:g} s")


def _words(line: bytes) -> list[str]:
    return line.decode().split(" ")
