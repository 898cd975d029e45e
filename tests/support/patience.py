"""How long a test waits, and how late something may be: each figure is scaled here, in one place.

Figures in tests are those of a quiet machine. A machine on which twelve processes want two cores is six
times slower, and disks may take seconds; a wait that ends when its condition holds costs nothing then.
``PATIENCE=3`` in the environment makes all of it three times as long, for a machine that is slower still.
"""

import os

GIVEN = float(os.environ.get("PATIENCE", "1"))
# Until a test is told that what it waits for does not happen, also where ten times too much is to be
# done on a busy machine; no figure of the product.
PATIENCE_S = 120.0 * GIVEN
CORES = len(os.sched_getaffinity(0))


def patient(seconds: float) -> float:
    """So many seconds of a quiet machine, on this one as it is now: up to PATIENCE_S."""
    return max(seconds, min(seconds * stretch(), PATIENCE_S))


def stretch() -> float:
    """How many times slower than a quiet machine this one is: the processes that want each core."""
    with open("/proc/loadavg") as file:
        last_minute, _, _, just_now, _ = file.read().split()
    wanting = max(float(last_minute), float(just_now.partition("/")[0]))
    return GIVEN * max(1.0, wanting / CORES)
