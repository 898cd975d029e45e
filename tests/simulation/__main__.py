"""python -m tests.simulation SEED: the table of one seed. SEEDS a-b: the totals of many."""

import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.simulation.judges import Broken
from tests.simulation.simulation import Simulation


def show(seed: int) -> int:
    """The table of one seed; 1 when a promise was broken."""
    why = ""
    with TemporaryDirectory(prefix="simulation-") as folder:
        simulation = Simulation(seed, Path(folder))
        try:
            simulation.run()
        except Broken as broken:
            why = str(broken)
    for line in simulation.trace.lines():
        print(line)
    for name, count in sorted(simulation.figures.counts.items()):
        print(f"{count:6} {name}")
    print(f"seed {seed}: {why or 'every promise kept'}")
    return 1 if why else 0


if __name__ == "__main__":
    sys.exit(show(int(sys.argv[1])))
