"""All clients of one server: how many may connect, and whose request is read next.

A new client is always admitted. When there are too many clients, the pool closes the connection that
has been idle longest, so that no number of idle or slow clients keeps a new one out. However many
clients send at once, the loop's other work goes on, because each iteration of the loop reads requests
for READ_BUDGET_S at most. The pool must never know what a request is.
"""

import asyncio
from collections import OrderedDict, deque
from collections.abc import Callable
from typing import Protocol

READ_BUDGET_S = 0.002  # a dozen requests, and no more than an exchange with Consul takes


class Closable(Protocol):
    """A client."""

    def abort(self) -> "asyncio.Task[None] | None":
        """Close the connection at once."""


class ClientPool:
    """The connected clients."""

    def __init__(self, clients_max: int, slow_readers_max: int) -> None:
        self.members: set[Closable] = set()  # all of them
        self._clients_max = clients_max  # the limit of connected clients
        self._slow_readers_max = slow_readers_max  # the limit of clients that have not read their answer yet
        self._idle: OrderedDict[Closable, None] = OrderedDict()  # the longest first
        self._slow_readers: OrderedDict[Closable, None] = OrderedDict()  # the longest first
        self._queue: deque[Callable[[], None]] = deque()
        self._spent_s = 0.0
        self._scheduled = False

    def admit(self, member: Closable) -> bool:
        """Return whether the client may stay. If there are too many, close the one that was idle longest."""
        if len(self.members) >= self._clients_max:
            if not self._idle:
                return False
            self._close(next(iter(self._idle)))
        self.members.add(member)
        self.mark_idle(member)
        return True

    def mark_idle(self, member: Closable) -> None:
        """Note that the server waits for the client's next request."""
        self._slow_readers.pop(member, None)
        self._idle[member] = None

    def mark_busy(self, member: Closable) -> None:
        """Note that the client's request has arrived, so that the client waits for the answer."""
        self._idle.pop(member, None)

    def mark_sending(self, member: Closable) -> None:
        """Note that the client has not read all of its answer yet. Beyond the limit, close the first such."""
        self._slow_readers[member] = None
        if len(self._slow_readers) > self._slow_readers_max:
            self._close(next(iter(self._slow_readers)))

    def remove(self, member: Closable) -> None:
        self.members.discard(member)
        self._idle.pop(member, None)
        self._slow_readers.pop(member, None)

    def _close(self, member: Closable) -> None:
        self.remove(member)
        member.abort()

    # --- whose request is read next --------------------------------------------------------------

    def read_in_turn(self, read: Callable[[], None]) -> bool:
        """Call ``read`` now or in a later iteration of the loop; return whether it was called now."""
        if not self._scheduled:
            self._scheduled = True
            asyncio.get_running_loop().call_soon(self._next_iteration)
        if self._queue or self._spent_s >= READ_BUDGET_S:
            self._queue.append(read)
            return False
        self._timed(read)
        return True

    def _next_iteration(self) -> None:
        self._spent_s = 0.0
        while self._queue and self._spent_s < READ_BUDGET_S:
            self._timed(self._queue.popleft())
        self._scheduled = bool(self._queue)
        if self._scheduled:
            asyncio.get_running_loop().call_soon(self._next_iteration)

    def _timed(self, read: Callable[[], None]) -> None:
        loop = asyncio.get_running_loop()
        began = loop.time()
        read()
        self._spent_s += loop.time() - began
