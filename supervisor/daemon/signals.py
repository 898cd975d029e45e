"""The signals that the daemon hears, and the time in which they wait.

A stop that comes before the loop can hear it, or between two of its lives, must not end the process:
what is on record may have to be wound up. Nothing here decides what a signal means.
"""

import signal

HANDLED = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


def block() -> None:
    """They wait from now on, and no other signal does, whatever our parent left blocked.

    A signal that our parent left ignored, as nohup and shell scripts do, waits just the same.
    """
    signal.pthread_sigmask(signal.SIG_SETMASK, HANDLED)


def unblock() -> None:
    """Those that waited come now."""
    signal.pthread_sigmask(signal.SIG_UNBLOCK, HANDLED)
