"""``python -m tests.system.fence``: a node is lost beside a fence device, and another one acts in its place.

tests/system/emulated/play.py describes the arguments and the exit code.
"""

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from statistics import median

from tests.system.emulated.play import Player, Result, play
from tests.system.fence.judge import End
from tests.system.fence.lab import Lab
from tests.system.fence.scenes import SCENES, Scene, run


def main(arguments: Sequence[str] | None = None) -> int:
    """Play the scenes; print a row for each, and how long after the loss the other node acted."""
    return play("tests.system.fence", SCENES, _opened, _summary, arguments)


@contextmanager
def _opened(folder: Path) -> Iterator[Player[Scene]]:
    lab = Lab(folder)
    with lab.machines:
        yield lambda scene: _result(scene, lab)


def _result(scene: Scene, lab: Lab) -> Result:
    verdict, expected = run(scene, lab)
    return Result(scene.name, str(verdict), expected, verdict.end is End.BOTH, verdict.after_s)


def _summary(results: Sequence[Result]) -> Sequence[str]:
    told = []
    for scene in SCENES:
        times = [each.figure_s for each in results if each.name == scene.name and each.figure_s is not None]
        if times:
            wanted = "" if scene.median_s is None else f" (at most {scene.median_s:g} s wanted)"
            figures = f"median {median(times):.2f} s{wanted}, worst {max(times):.2f} s after the loss"
            told.append(f"{scene.name:34} {len(times)} runs, {figures}")
    return told


if __name__ == "__main__":
    sys.exit(main())
