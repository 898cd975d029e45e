"""``python -m tests.consul.semaphores``: twenty supervisors, five slots, and all kinds of faults.

    python -m tests.consul.semaphores                      two minutes, a seed of its own
    python -m tests.consul.semaphores --seed 7 --minutes 1 --nodes 12
    python -m tests.consul.semaphores --keep FOLDER        all logs and records stay there

Exit code 1: a promise was broken, or something was left behind.
"""

import argparse
import os
import random
import sys
import tempfile
from pathlib import Path

from tests.consul.semaphores.round import LIMIT, NODES, Round
from tests.support.consul import Agent


def main() -> int:
    """Play one round, and print its seed, its faults and what was broken."""
    parser = argparse.ArgumentParser(prog="python -m tests.consul.semaphores")
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(10_000))
    parser.add_argument("--minutes", type=float, default=2.0)
    parser.add_argument("--nodes", type=int, default=NODES)
    parser.add_argument("--keep", type=Path, help="an empty folder for all files of the round")
    given = parser.parse_args()
    print(
        f"seed {given.seed}: {given.nodes} supervisors, {LIMIT} slots, {given.minutes:g} minutes, "
        f"load average {os.getloadavg()[0]:.1f}",
        flush=True,
    )
    with tempfile.TemporaryDirectory(prefix="semaphores-") as made:
        folder = Path(given.keep or made)
        with Agent(folder / "consul") as agent:
            played = Round(agent, folder / "nodes", "round", given.seed, given.nodes)
            try:
                played.play(given.minutes * 60)
                for kind, count in sorted(played.faults.items()):
                    print(f"  {count:4} x {kind}")
                played.end()
            except AssertionError as error:
                print(f"broken: {error}")
                return 1
            finally:
                played.close()
    print("all held")
    return 0


if __name__ == "__main__":
    sys.exit(main())
