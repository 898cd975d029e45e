"""The course of a seed, or the totals of many.

    python -m tests.models.simulation 17        its whole table: time, node, event, actions
    python -m tests.models.simulation 1-10000   the totals of many; a failing seed prints the end of its table

Exit 1 when a promise was broken.
"""

import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.models.simulation import totals
from tests.models.simulation.judges import Broken
from tests.models.simulation.simulation import Simulation

USAGE = "cannot tell which seeds: give one such as 17, or several such as 1-200"


def show(seed: int) -> int:
    """Print the table of one seed, and return 1 when a promise was broken."""
    why = ""
    with TemporaryDirectory(prefix="simulation-") as folder:
        simulation = Simulation(seed, Path(folder))
        try:
            simulation.run()
        except Broken as broken:
            why = str(broken)
        finally:
            for line in simulation.trace.lines():
                print(line)
    for line in totals.table(simulation.figures.counts):
        print(line)
    print(f"seed {seed}: {why or 'every promise kept'}")
    return 1 if why else 0


def main(arguments: list[str]) -> int:
    """Run the seeds of the arguments, and return the exit code."""
    first, dash, last = arguments[0].partition("-") if len(arguments) == 1 else ("", "", "")
    several = dash and last.isdecimal() and first.isdecimal() and int(first) <= int(last)
    if not first.isdecimal() or (dash and not several):
        print(USAGE, file=sys.stderr)
        return 2
    if dash:
        return totals.run(range(int(first), int(last) + 1))
    return show(int(first))


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except BrokenPipeError:
        sys.exit(0)  # the reader has closed the pipe
