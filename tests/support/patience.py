"""How long a test waits, and how late an event may be: each figure is scaled here, in one place.

Figures in tests are those of a quiet machine. A machine with twelve busy processes on two cores is six times
slower, and its disks may take seconds. A wait that ends when its condition holds costs nothing then.
``PATIENCE=3`` in the environment makes every figure three times as long, for a machine that is slower still.
"""

import os

GIVEN = float(os.environ.get("PATIENCE", "1"))
# How long a test waits for an event, even on a machine with ten times too much to do. It is no figure of
# the product.
PATIENCE_S = 120.0 * GIVEN
CORES = len(os.sched_getaffinity(0))


def patient(seconds: float) -> float:
    """Return a time of a quiet machine as it is on this machine now, up to PATIENCE_S."""
    return max(seconds, min(seconds * stretch(), PATIENCE_S))


def stretch() -> float:
    """Return how many times slower than a quiet machine this one is, by the processes that want each core."""
    with open("/proc/loadavg") as file:
        last_minute, _, _, just_now, _ = file.read().split()
    wanting = max(float(last_minute), float(just_now.partition("/")[0]))
    return GIVEN * max(1.0, wanting / CORES)
