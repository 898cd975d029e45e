"""Signals as callbacks of the loop, of which none is lost.

Python's signal handler notes each signal by its number here. asyncio would keep it in a socket, which a burst
of signals fills, and a request to stop that arrives then would be lost.
"""

import asyncio
import signal
from collections.abc import Callable, Mapping
from types import FrameType


def listen(loop: asyncio.AbstractEventLoop, callbacks: Mapping[signal.Signals, Callable[[], None]]) -> None:
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
