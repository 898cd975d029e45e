"""Many seeds, two at a time: their counts, their speed, and the seeds that broke a promise."""

import time
import traceback
from collections import Counter
from collections.abc import Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.models.simulation.figures import HEADLINES
from tests.models.simulation.judges import Broken
from tests.models.simulation.simulation import Simulation

PROCESSES = 2
TAIL_ROWS = 40
TAILS_MAX = 5  # the first few are printed in full, of the rest only the numbers
# Exceptions that a bug of the product or of the simulation raises.
BUGS = (AssertionError, ArithmeticError, LookupError, TypeError, ValueError)


@dataclass(frozen=True)
class Result:
    """The result of one seed.

    why: blank when every promise was kept.
    tail: the end of the table of a seed that broke a promise.
    """

    seed: int
    counts: Counter[str]
    digest: str = ""
    why: str = ""
    tail: str = ""


def result_of(seed: int, *, digest: bool = False) -> Result:
    """Run a seed to its end, or to the first broken promise."""
    with TemporaryDirectory(prefix="simulation-") as folder:
        simulation = Simulation(seed, Path(folder))
        why = ""
        try:
            simulation.run()
        except Broken as broken:
            why = str(broken)
        except BUGS:
            why = traceback.format_exc()
    return Result(
        seed,
        simulation.figures.counts,
        simulation.digest() if digest else "",
        why,
        "\n".join(simulation.trace.lines(TAIL_ROWS)) if why else "",
    )


def run(seeds: range) -> int:
    """Run all seeds, print the totals, and return 1 when a promise was broken."""
    began_at = time.monotonic()
    totals: Counter[str] = Counter()
    broken: list[int] = []
    for result in _results(seeds):
        totals += result.counts
        if result.why:
            broken.append(result.seed)
            if len(broken) <= TAILS_MAX:
                print(f"{result.tail}\nseed {result.seed}: {result.why}\n", flush=True)
    minutes = (time.monotonic() - began_at) / 60
    for line in table(totals):
        print(line)
    print(f"{len(seeds)} seeds, {len(seeds) / minutes:.0f} a minute, {len(broken)} broke a promise", *broken)
    return 1 if broken else 0


def _results(seeds: Iterable[int]) -> Iterator[Result]:
    with ProcessPoolExecutor(PROCESSES) as pool:
        yield from pool.map(result_of, seeds, chunksize=10)


def table(totals: Counter[str]) -> Iterator[str]:
    """Return the table of figures, the headlines first."""
    for name in HEADLINES:
        yield f"{totals[name]:9}  {name}"
    for name in sorted(totals.keys() - set(HEADLINES)):
        yield f"{totals[name]:9}  {name}"
