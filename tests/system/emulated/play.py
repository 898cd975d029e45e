"""All scenes of a command line: a row for each, and whether all ended as expected.

    --runs 20 reset    those whose names begin like this, 20 times
    --keep FOLDER      all consoles stay there
    --reruns 1         play a scene once more that did not end as expected

With SHARE in the environment only that part of them (tests/support/share.py).

Exit code 1: a scene did not end as expected.
"""

import argparse
import os
import tempfile
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, TypeVar

from tests.support.share import share_of

AT_ONCE = min(4, os.cpu_count() or 1)


class Named(Protocol):
    """A scene."""

    @property
    def name(self) -> str:
        """How the command line and the rows name it."""


S = TypeVar("S", bound=Named)


@dataclass(frozen=True, slots=True)
class Result:
    """What became of a scene.

    expected: what should have happened instead. Blank: it did.
    final: whether it is not to be played over, because two acted.
    figure_s: a time that the summary counts with. None: it has none.
    """

    name: str
    row: str
    expected: str = ""
    final: bool = False
    figure_s: float | None = None


Player = Callable[[S], Result]


def play(
    prog: str,
    scenes: Sequence[S],
    lab: Callable[[Path], AbstractContextManager[Player[S]]],
    summary: Callable[[Sequence[Result]], Sequence[str]],
    arguments: Sequence[str] | None,
) -> int:
    """Play the chosen scenes in this lab; print a row for each, and the summary of those with a figure."""
    parser = argparse.ArgumentParser(prog=f"python -m {prog}", allow_abbrev=False)
    parser.add_argument("names", nargs="*", default=[""], help="how the names of the scenes begin")
    parser.add_argument("--runs", type=int, default=1, metavar="N", help="each scene N times")
    parser.add_argument(
        "--at-once", type=int, default=AT_ONCE, metavar="N", help="scenes of two machines each"
    )
    parser.add_argument("--reruns", type=int, default=0, metavar="N", help="of a scene with another end")
    parser.add_argument("--keep", type=Path, metavar="FOLDER", help="a new folder for all consoles")
    given = parser.parse_args(arguments)
    chosen = share_of(each for each in scenes if each.name.startswith(tuple(given.names))) * given.runs
    print(f"{len(chosen)} scenes, {os.cpu_count()} cores, load average {os.getloadavg()[0]:.1f}", flush=True)
    results = []
    with tempfile.TemporaryDirectory(prefix="emulated-") as made:
        if given.keep:
            given.keep.mkdir(parents=True)
        with lab(given.keep or Path(made)) as player, ThreadPoolExecutor(given.at_once) as threads:
            plays = [threads.submit(_played, scene, player, given.reruns) for scene in chosen]
            for result in (done.result() for done in as_completed(plays)):
                results.append(result)
                expected = f"; expected: {result.expected}" if result.expected else ""
                print(f"{result.name:34} {result.row}{expected}", flush=True)
    for line in summary([each for each in results if each.figure_s is not None]):
        print(line)
    broken = sum(bool(each.expected) for each in results)
    print(f"{broken} of {len(results)} scenes did not end as expected")
    return 1 if broken else 0


def _played(scene: S, player: Player[S], reruns: int) -> Result:
    """Play the scene, once more if it did not end as expected. Two nodes that act are never played over."""
    try:
        result = player(scene)
    except (AssertionError, OSError) as error:  # a TimeoutError is an OSError
        result = Result(scene.name, f"did not come to its end: {error}", "an end")
    if not reruns or not result.expected or result.final:
        return result
    print(f"RERUN {scene.name}: {result.row}", flush=True)
    return _played(scene, player, reruns - 1)
