"""The signals that the daemon handles, and their block until the loop handles them.

A stop that arrives before the loop can handle it, or between two loops, must not end the process, because
what is on record may have to be wound up. Nothing here decides what a signal means.
"""

import signal

HANDLED = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


def block() -> None:
    """Block the handled signals, and unblock all others, whatever our parent left blocked.

    A signal that our parent left ignored, as nohup and shell scripts do, stays pending as well (Linux keeps a
    blocked signal even if it is ignored).
    """
    signal.pthread_sigmask(signal.SIG_SETMASK, HANDLED)


def unblock() -> None:
    """Let the signals that are pending arrive."""
    signal.pthread_sigmask(signal.SIG_UNBLOCK, HANDLED)
