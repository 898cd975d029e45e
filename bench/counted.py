"""A supervisor whose work is counted: the command line of ``consul-supervisor``, after two arguments.

    python -m bench.counted TRACE calls|allocations|cpu|time run FILE

It writes one JSON line for each marker to TRACE: [marker, detail, count so far]. The markers:

    wake      the loop has something to do again (the count does not go on while the loop waits)
    rest      the loop has nothing to do
    send      bytes go to a socket: the first line of the request
    answer    bytes of an answer have come: the method and target of its request
    reaped    the end of a child has been collected
    spawn     a child is started

``calls`` counts calls of functions by a profile hook. ``allocations`` counts calls of malloc, where the
environment loads the library of ``allocations.c`` and makes Python use malloc for each object. ``cpu`` counts
the nanoseconds of this process's own CPU time, which no hook and no other process moves. ``time`` counts no
work: each marker has its time in nanoseconds of CLOCK_MONOTONIC, which the stamps of the hooks have too.
"""

import asyncio.selector_events as asyncio_sockets
import ctypes
import json
import os
import selectors
import sys
import time
from collections.abc import Callable
from typing import IO, Any

from supervisor.__main__ import main
from supervisor.transport.connection import Connection

Count = Callable[[], int]


class Trace:
    """Markers, each with the count at its moment, kept in memory until the loop rests."""

    def __init__(
        self, file: IO[str], count: Count, pause: Callable[[], None], go_on: Callable[[], None]
    ) -> None:
        self._file, self._count = file, count
        self._pause, self._go_on = pause, go_on
        self._base = self._counted = 0
        self._markers: list[tuple[str, str, int]] = []

    def mark(self, marker: str, detail: str = "") -> None:
        """Note a marker."""
        self._markers.append((marker, detail, self._counted + self._count() - self._base))

    def rest(self) -> None:
        """Stop counting, and write what has been noted."""
        self.mark("rest")
        self._counted = self._markers[-1][2]
        self._pause()
        for marker in self._markers:
            self._file.write(json.dumps(marker) + "\n")
        self._file.flush()
        self._markers.clear()

    def wake(self) -> None:
        """Go on counting."""
        self._go_on()
        self._base = self._count()
        self.mark("wake")


class TimedTrace(Trace):
    """Markers, each with its time."""

    def __init__(self, file: IO[str]) -> None:
        super().__init__(file, time.monotonic_ns, lambda: None, lambda: None)

    def mark(self, marker: str, detail: str = "") -> None:
        """Note a marker with its time."""
        self._markers.append((marker, detail, time.monotonic_ns()))


def instrument(trace: Trace) -> None:
    """Place the markers, each around a function that the loop or the supervisor calls anyway."""
    select = selectors.EpollSelector.select
    write = asyncio_sockets._SelectorSocketTransport.write  # type: ignore[attr-defined]
    updated, spawn, waitid = Connection.buffer_updated, os.posix_spawn, os.waitid

    def counted_select(self: Any, timeout: float | None = None) -> Any:
        if timeout == 0:
            return select(self, timeout)
        trace.rest()
        found = select(self, timeout)
        trace.wake()
        return found

    def counted_write(self: Any, data: bytes) -> None:
        trace.mark("send", bytes(data[:200]).split(b"\r\n")[0].decode())
        write(self, data)

    def counted_updated(self: Connection, nbytes: int) -> None:
        exchange = self._exchange
        if exchange is not None:
            trace.mark("answer", f"{exchange.request.method} {exchange.request.path_url}")
        updated(self, nbytes)

    def counted_spawn(*args: Any, **options: Any) -> int:
        trace.mark("spawn")
        return spawn(*args, **options)

    def counted_waitid(*args: Any) -> Any:
        trace.mark("reaped")
        return waitid(*args)

    selectors.EpollSelector.select = counted_select  # type: ignore[method-assign]
    asyncio_sockets._SelectorSocketTransport.write = counted_write  # type: ignore[attr-defined]
    Connection.buffer_updated = counted_updated  # type: ignore[method-assign]
    os.posix_spawn = counted_spawn
    os.waitid = counted_waitid


def counted_calls() -> tuple[Count, Callable[[], None], Callable[[], None]]:
    """Return the count of calls, what stops it, and what lets it go on."""
    calls = 0

    def hook(frame: object, event: str, argument: object) -> None:
        nonlocal calls
        if event in ("call", "c_call"):
            calls += 1

    return (lambda: calls), (lambda: sys.setprofile(None)), (lambda: sys.setprofile(hook))


def counted_allocations() -> tuple[Count, Callable[[], None], Callable[[], None]]:
    """Return the count of allocations; nothing needs to stop it."""
    library = ctypes.CDLL(None)
    library.bench_allocations.restype = ctypes.c_ulong
    return library.bench_allocations, (lambda: None), (lambda: None)


def own_cpu() -> tuple[Count, Callable[[], None], Callable[[], None]]:
    """Return the CPU time in ns; nothing needs to stop it."""
    return time.process_time_ns, (lambda: None), (lambda: None)


if __name__ == "__main__":
    path, what = sys.argv[1:3]
    del sys.argv[1:3]
    kinds = {"calls": counted_calls, "allocations": counted_allocations, "cpu": own_cpu}
    with open(path, "w", encoding="utf-8") as file:
        instrument(TimedTrace(file) if what == "time" else Trace(file, *kinds[what]()))
        sys.exit(main())
