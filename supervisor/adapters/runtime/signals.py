"""The signals that a process handles: blocked until the loop handles them, and then callbacks of the loop.

A stop that arrives before the loop can handle it, or between two loops, must not end the process, because
recorded tenures may have to be wound up. And no signal is lost: Python's signal handler notes each by its
number here. asyncio would keep it in a socket, which a burst of signals fills, and a request to stop that
arrives then would be lost. Nothing here decides how a signal is handled.
"""

import signal
from collections.abc import Callable, Mapping
from types import FrameType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from asyncio import AbstractEventLoop

HANDLED = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


def block() -> None:
    """Block the handled signals, and unblock all others, however our parent left them.

    A signal that our parent left ignored, as nohup and shell scripts do, also stays pending, because Linux
    keeps a blocked signal even if it is ignored.
    """
    signal.pthread_sigmask(signal.SIG_SETMASK, HANDLED)


def unblock() -> None:
    signal.pthread_sigmask(signal.SIG_UNBLOCK, HANDLED)


def listen(loop: "AbstractEventLoop", callbacks: Mapping[signal.Signals, Callable[[], None]]) -> None:
    """Call the callback of each signal from the loop. Several signals of one kind may cause a single call."""
    pending: set[int] = set()

    def handle(number: int, frame: FrameType | None) -> None:
        is_scheduled = bool(pending)
        pending.add(number)
        if not is_scheduled and not loop.is_closed():
            loop.call_soon_threadsafe(run)  # wakes the loop; a signal handler runs between any two lines

    def run() -> None:
        nonlocal pending
        arrived, pending = pending, set()  # a signal between these two assignments is in ``arrived``
        for number in callbacks:
            if number in arrived:
                callbacks[number]()

    for number in callbacks:
        signal.signal(number, handle)
