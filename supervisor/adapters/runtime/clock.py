"""The clock of the core, as every process of ours reads it."""

import time


def boottime() -> float:
    """Return the seconds of CLOCK_BOOTTIME, which goes on while the machine is suspended."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)
