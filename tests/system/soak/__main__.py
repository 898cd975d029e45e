"""``python -m tests.system.soak``: two supervisors with a hundred elections, disturbed for a long time.

    python -m tests.system.soak                      three minutes, a seed of its own
    python -m tests.system.soak --seed 7 --minutes 60
    python -m tests.system.soak --keep FOLDER        all logs and records stay there

Exit code 1: something grew, was left behind, or did not come to rest.
"""

import argparse
import os
import random
import sys
import tempfile
from pathlib import Path

import psutil

from tests.support.consul import Agent
from tests.system.soak.judge import plot
from tests.system.soak.pair import ELECTIONS, Pair
from tests.system.soak.receiver import Receiver
from tests.system.soak.soak import Soak

TOLD = "Two supervisors with a hundred elections, disturbed for a long time: nothing may grow."
# Each of the two has a watch and a write under way for each election, all from one address.
CONSUL = {"limits": {"http_max_conns_per_client": 2000}}


def main() -> int:
    """Run one soak; print its seed, its counts, its plot and its verdict."""
    parser = argparse.ArgumentParser(prog="python -m tests.system.soak", description=TOLD, allow_abbrev=False)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(10_000))
    parser.add_argument("--minutes", type=float, default=3.0, metavar="N", help="default 3")
    parser.add_argument("--keep", type=Path, metavar="FOLDER", help="an empty folder for all files")
    given = parser.parse_args()
    print(
        f"seed {given.seed}: twice {ELECTIONS} elections, {given.minutes:g} minutes, {os.cpu_count()} cores, "
        f"load average {os.getloadavg()[0]:.1f}",
        flush=True,
    )
    with tempfile.TemporaryDirectory(prefix="soak-") as made:
        return _soak(Path(given.keep or made), given.seed, given.minutes * 60)


def _soak(folder: Path, seed: int, seconds: float) -> int:
    with Agent(folder / "consul", config=CONSUL) as agent, Receiver() as receiver:
        pair = Pair(agent, folder, receiver.url)
        soak = Soak(pair, seed)
        broken: list[str] = []
        try:
            soak.last_for(seconds)
            pair.stop()
        except (AssertionError, psutil.Error) as error:  # or the process that should have lived has ended
            broken.append(str(error))
        finally:
            pair.close()
    print(_told(soak, pair, receiver), flush=True)
    broken += [f"{series.name} is beyond its limit" for series in soak.series if not series.kept]
    print("\n".join(f"broken: {what}" for what in broken) or "all flat")
    return 1 if broken else 0


def _told(soak: Soak, pair: Pair, receiver: Receiver) -> str:
    acts = [f"  {count:5} x {kind}" for kind, count in sorted(soak.churn.acts.items())]
    begun = pair.living.log_text.count('"role": "acquiring"')
    return "\n".join([
        *acts,
        f"{soak.churn.acts.total()} acts, {soak.rests} rests; the one that lived through it "
        f"held {begun} times; {receiver.told} webhooks",
        plot(soak.series),
    ])  # fmt: skip


if __name__ == "__main__":
    sys.exit(main())
