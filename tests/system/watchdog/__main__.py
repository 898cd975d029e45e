"""``python -m tests.system.watchdog``: nodes fail on machines with a watchdog, and no two act at once.

tests/system/emulated/play.py describes the arguments and the exit code.
"""

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from tests.system.emulated.play import Player, Result, play
from tests.system.watchdog.judge import End, Verdict
from tests.system.watchdog.lab import Lab
from tests.system.watchdog.scenes import SCENES, Scene, run


def main(arguments: Sequence[str] | None = None) -> int:
    """Play the scenes; print a row for each, and the smallest distance."""
    return play("tests.system.watchdog", SCENES, _opened, _summary, arguments)


@contextmanager
def _opened(folder: Path) -> Iterator[Player[Scene]]:
    with Lab(folder) as lab:
        yield lambda scene: _result(scene, run(scene, lab))


def _result(scene: Scene, verdict: Verdict) -> Result:
    expected = "" if verdict.end is scene.end else scene.end.value
    figure_s = verdict.distance_s if scene.end is End.RESET else None
    return Result(scene.name, _row(verdict), expected, verdict.end is End.BOTH, figure_s)


def _summary(results: Sequence[Result]) -> Sequence[str]:
    distances = [each.figure_s for each in results if each.figure_s is not None]
    if not distances:
        return []
    return [f"{len(distances)} resets, the latest {min(distances):.2f} s before another node might act"]


def _row(verdict: Verdict) -> str:
    told = [verdict.end.value]
    if verdict.distance_s is not None and verdict.reset_at is not None:
        told.append(f"{verdict.distance_s:.2f} s before that")
    if verdict.first_act is not None and not verdict.together_s:
        told.append(f"{verdict.first_act - verdict.last_act:.2f} s before one acted")
    if verdict.together_s:
        told.append(f"for {verdict.together_s:.1f} s")
    return ", ".join(told)


if __name__ == "__main__":
    sys.exit(main())
