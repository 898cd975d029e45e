"""Signals in turns of the loop: however many come, none is lost.

What has come is kept by its number. asyncio keeps it in a socket, which a burst fills; what comes then is
lost, and a stop may be among it.
"""

import asyncio
import signal
from collections.abc import Callable, Mapping
from types import FrameType


def listen(loop: asyncio.AbstractEventLoop, meanings: Mapping[signal.Signals, Callable[[], None]]) -> None:
    """Call what each signal means in a turn of the loop; several of one kind may be one call."""
    come: set[int] = set()

    def heard(number: int, frame: FrameType | None) -> None:
        is_told = bool(come)
        come.add(number)
        if not is_told and not loop.is_closed():
            loop.call_soon_threadsafe(tell)  # it wakes the loop; a signal handler runs between any two lines

    def tell() -> None:
        nonlocal come
        these, come = come, set()  # one that comes between the two is among these
        for number in meanings:
            if number in these:
                meanings[number]()

    for number in meanings:
        signal.signal(number, heard)
