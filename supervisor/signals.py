"""The signals that the daemon hears, and the time in which they wait.

A stop that comes before the loop can hear it, or between two of its lives, must not end the process:
what is on record may have to be wound up. Nothing here decides what a signal means.
"""

import signal

HEARD = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


def hold() -> None:
    """They wait from now on."""
    signal.pthread_sigmask(signal.SIG_BLOCK, HEARD)


def let_through() -> None:
    """Those that waited come now."""
    signal.pthread_sigmask(signal.SIG_UNBLOCK, HEARD)
