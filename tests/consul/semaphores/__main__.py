"""``python -m tests.consul.semaphores``: twenty supervisors, three slots, and all kinds of faults.

    python -m tests.consul.semaphores                      five minutes, a seed of its own
    python -m tests.consul.semaphores --seed 7 --minutes 1
    python -m tests.consul.semaphores --keep FOLDER        all logs and records stay there

Exit code 1: a promise was broken, or something was left behind.
"""

import argparse
import random
import sys
import tempfile
from pathlib import Path

from tests.consul.semaphores.round import IDLE_S_MAX, LIMIT, NODES, PASSED_MAX, Round
from tests.consul.semaphores.verdict import Verdict
from tests.support.consul import Agent


def main() -> int:
    """Play one round, and print its seed, its counts and its verdict."""
    parser = argparse.ArgumentParser(prog="python -m tests.consul.semaphores")
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(10_000))
    parser.add_argument("--minutes", type=float, default=5.0)
    parser.add_argument("--keep", type=Path, help="an empty folder for all files of the round")
    given = parser.parse_args()
    print(f"seed {given.seed}: {NODES} supervisors, {LIMIT} slots, {given.minutes:g} minutes", flush=True)
    with tempfile.TemporaryDirectory(prefix="semaphores-") as made:
        return _round(Path(given.keep or made), given.seed, given.minutes * 60)


def _round(folder: Path, seed: int, seconds: float) -> int:
    with Agent(folder / "consul") as agent:
        played = Round(agent, folder / "nodes", "round", seed)
        try:
            verdict = played.play(seconds)
            print(_told(played, verdict), flush=True)
            played.end()
        except AssertionError as error:
            print(f"broken: {error}")
            return 1
        finally:
            played.close()
    print("broken" if verdict.broken else "all held")
    return 1 if verdict.broken else 0


def _told(played: Round, verdict: Verdict) -> str:
    lines = [f"  {count:4} x {kind}" for kind, count in sorted(played.faults.items())]
    begun = verdict.begun
    lines += [
        f"faults: {played.faults.total()}; tenures: {sum(begun.values())}, "
        f"of one supervisor {min(begun.values(), default=0)} to {max(begun.values(), default=0)}",
        f"at most at once: {verdict.most_at_once}",
        f"longest that a slot was idle: {verdict.idle_s:.2f} s (limit {IDLE_S_MAX:g} s)",
        f"longest undisturbed wait: {verdict.wait_s:.1f} s; most that passed one in line: "
        f"{verdict.passed} (limit {PASSED_MAX})",
    ]
    starved = [name for name in played.nodes if name not in begun]
    if starved and sum(begun.values()) > 3 * NODES:
        verdict.broken.append(f"never held: {', '.join(starved)}")
    return "\n".join([*lines, *(f"broken: {what}" for what in verdict.broken)])


if __name__ == "__main__":
    sys.exit(main())
