"""``python -m tests.system.watchdog``: nodes fail on machines with a watchdog, and no two act at once.

    python -m tests.system.watchdog                    each scene once
    python -m tests.system.watchdog --runs 20 reset    those whose names begin like this, 20 times
    python -m tests.system.watchdog --keep FOLDER      all consoles stay there
    python -m tests.system.watchdog --reruns 1         play a scene once more that did not end as expected

Exit code 1: a scene did not end as expected.
"""

import argparse
import os
import sys
import tempfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path

from tests.system.watchdog.judge import End, Verdict
from tests.system.watchdog.lab import Lab
from tests.system.watchdog.scenes import SCENES, Scene, run

AT_ONCE = min(4, os.cpu_count() or 1)


def main(arguments: Sequence[str] | None = None) -> int:
    """Play the scenes; print a row for each, and the smallest distance."""
    parser = argparse.ArgumentParser(prog="python -m tests.system.watchdog", allow_abbrev=False)
    parser.add_argument("names", nargs="*", default=[""], help="how the names of the scenes begin")
    parser.add_argument("--runs", type=int, default=1, metavar="N", help="each scene N times")
    parser.add_argument(
        "--at-once", type=int, default=AT_ONCE, metavar="N", help="scenes of two machines each"
    )
    parser.add_argument("--reruns", type=int, default=0, metavar="N", help="of a scene with another end")
    parser.add_argument("--keep", type=Path, metavar="FOLDER", help="a new folder for all consoles")
    given = parser.parse_args(arguments)
    chosen = [each for each in SCENES if each.name.startswith(tuple(given.names))] * given.runs
    with tempfile.TemporaryDirectory(prefix="watchdog-") as made:
        if given.keep:
            given.keep.mkdir(parents=True)
        return _play(given.keep or Path(made), chosen, given.at_once, given.reruns)


def _verdict(scene: Scene, lab: Lab, reruns: int) -> Verdict:
    """Play the scene, once more if it did not end as expected. Two nodes that act are never played over."""
    try:
        verdict = run(scene, lab)
        if not reruns or verdict.end in (scene.end, End.BOTH):
            return verdict
        why = str(verdict.end)
    except (AssertionError, OSError) as error:
        if not reruns:
            raise
        why = str(error)
    print(f"RERUN {scene.name}: {why}", flush=True)
    return _verdict(scene, lab, reruns - 1)


def _play(folder: Path, scenes: Sequence[Scene], at_once: int, reruns: int) -> int:
    print(f"{len(scenes)} scenes, {os.cpu_count()} cores, load average {os.getloadavg()[0]:.1f}", flush=True)
    distances: list[float] = []
    broken = 0
    with Lab(folder) as lab, ThreadPoolExecutor(at_once) as threads:
        plays = {threads.submit(_verdict, scene, lab, reruns): scene for scene in scenes}
        for play in as_completed(plays):
            scene = plays[play]
            try:
                verdict = play.result()
            except (AssertionError, OSError) as error:  # a TimeoutError is an OSError
                row, as_expected = f"did not come to its end: {error}", False
            else:
                row, as_expected = _row(verdict), verdict.end is scene.end
                if scene.end is End.RESET and verdict.distance_s is not None:
                    distances.append(verdict.distance_s)
            print(f"{scene.name:34} {row}{'' if as_expected else f'; expected: {scene.end}'}", flush=True)
            broken += not as_expected
    if distances:
        print(f"{len(distances)} resets, the latest {min(distances):.2f} s before another node might act")
    print(f"{broken} of {len(scenes)} scenes did not end as expected")
    return 1 if broken else 0


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
