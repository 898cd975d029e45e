"""A supervisor whose steps are timed: the command line of ``consul-supervisor``, after one argument.

    python bench/timed.py TRACE run FILE

It writes one JSON line for each marker to TRACE: [marker, detail, ns of CLOCK_MONOTONIC]. The markers:

    wake      the loop has something to do again
    rest      the loop has nothing to do
    send      bytes go to a socket: the first line of the request
    answer    bytes of an answer have come: the method and target of its request
    reaped    the end of a child has been collected
    spawn     a child is started
"""

import asyncio.selector_events as asyncio_sockets
import json
import os
import selectors
import sys
import time
from typing import IO, Any

from supervisor.__main__ import main
from supervisor.adapters.transport.connection import Connection


class Trace:
    """Markers, each with its time, kept in memory until the loop rests."""

    def __init__(self, file: IO[str]) -> None:
        self._file = file
        self._markers: list[tuple[str, str, int]] = []

    def mark(self, marker: str, detail: str = "") -> None:
        """Note a marker with its time."""
        self._markers.append((marker, detail, time.monotonic_ns()))

    def rest(self) -> None:
        """Write what has been noted."""
        self.mark("rest")
        for marker in self._markers:
            self._file.write(json.dumps(marker) + "\n")
        self._file.flush()
        self._markers.clear()


def instrument(trace: Trace) -> None:
    """Place the markers, each around a function that the loop or the supervisor calls anyway."""
    select = selectors.EpollSelector.select
    write = asyncio_sockets._SelectorSocketTransport.write  # type: ignore[attr-defined]
    updated, spawn, waitid = Connection.buffer_updated, os.posix_spawn, os.waitid

    def timed_select(self: Any, timeout: float | None = None) -> Any:
        if timeout == 0:
            return select(self, timeout)
        trace.rest()
        found = select(self, timeout)
        trace.mark("wake")
        return found

    def timed_write(self: Any, data: bytes) -> None:
        trace.mark("send", bytes(data[:200]).split(b"\r\n")[0].decode())
        write(self, data)

    def timed_updated(self: Connection, nbytes: int) -> None:
        exchange = self._exchange
        if exchange is not None:
            trace.mark("answer", f"{exchange.request.method} {exchange.request.path_url}")
        updated(self, nbytes)

    def timed_spawn(*args: Any, **options: Any) -> int:
        trace.mark("spawn")
        return spawn(*args, **options)

    def timed_waitid(*args: Any) -> Any:
        trace.mark("reaped")
        return waitid(*args)

    selectors.EpollSelector.select = timed_select  # type: ignore[method-assign]
    asyncio_sockets._SelectorSocketTransport.write = timed_write  # type: ignore[attr-defined]
    Connection.buffer_updated = timed_updated  # type: ignore[method-assign]
    os.posix_spawn = timed_spawn
    os.waitid = timed_waitid


if __name__ == "__main__":
    path = sys.argv.pop(1)
    with open(path, "w", encoding="utf-8") as file:
        instrument(Trace(file))
        sys.exit(main())
