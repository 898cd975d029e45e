"""The signals that the daemon handles, and their block until the loop handles them.

A stop that arrives before the loop can handle it, or between two loops, must not end the process, because
recorded tenures may have to be wound up. Nothing here decides how a signal is handled.
"""

import signal

HANDLED = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


def block() -> None:
    """Block the handled signals, and unblock all others, however our parent left them.

    A signal that our parent left ignored, as nohup and shell scripts do, also stays pending, because Linux
    keeps a blocked signal even if it is ignored.
    """
    signal.pthread_sigmask(signal.SIG_SETMASK, HANDLED)


def unblock() -> None:
    signal.pthread_sigmask(signal.SIG_UNBLOCK, HANDLED)
