"""All clients of one server: how many there may be, and whose turn it is.

Whoever comes is let in: when there are too many, the one that has kept us waiting longest is hung up
on, so that no number of idle or slow clients keeps a new one out. And however many ask at once, the
loop's other work goes on: requests are read for TURN_S of each of its turns, the rest waits for the
next one. It must never know what a request is.
"""

import asyncio
from collections import OrderedDict, deque
from collections.abc import Callable
from typing import Generic, Protocol, TypeVar

TURN_S = 0.002  # a dozen requests, and no more than an exchange with Consul takes


class Member(Protocol):
    """A client."""

    def abort(self) -> object:
        """Hang up."""


M = TypeVar("M", bound=Member)


class Crowd(Generic[M]):
    """The clients that are connected: at most ``clients_max``, of which at most ``takers_max`` have an
    answer that they have not taken yet."""

    def __init__(self, clients_max: int, takers_max: int) -> None:
        self.members: set[M] = set()
        self._clients_max = clients_max
        self._takers_max = takers_max
        self._awaited: OrderedDict[M, None] = OrderedDict()  # the longest first, as below
        self._takers: OrderedDict[M, None] = OrderedDict()
        self._queue: deque[Callable[[], None]] = deque()
        self._spent_s = 0.0
        self._scheduled = False

    def admit(self, member: M) -> bool:
        """Whether there is room for one more, if need be in the place of another."""
        if len(self.members) >= self._clients_max:
            if not self._awaited:
                return False
            self._hang_up(next(iter(self._awaited)))
        self.members.add(member)
        self.awaits(member)
        return True

    def awaits(self, member: M) -> None:
        """From now on its next request is waited for."""
        self._takers.pop(member, None)
        self._awaited[member] = None

    def has_asked(self, member: M) -> None:
        """Its request is there: now it waits for us."""
        self._awaited.pop(member, None)

    def takes(self, member: M) -> None:
        """It has been given an answer and takes its time."""
        self._takers[member] = None
        if len(self._takers) > self._takers_max:
            self._hang_up(next(iter(self._takers)))

    def leaves(self, member: M) -> None:
        """It is no longer connected."""
        self.members.discard(member)
        self._awaited.pop(member, None)
        self._takers.pop(member, None)

    def _hang_up(self, member: M) -> None:
        self.leaves(member)
        member.abort()

    # --- whose turn it is ------------------------------------------------------------------------

    def turn(self, read: Callable[[], None]) -> bool:
        """Read a request, at once or in a later turn of the loop; whether it was at once."""
        if not self._scheduled:
            self._scheduled = True
            asyncio.get_running_loop().call_soon(self._next_turn)
        if self._queue or self._spent_s >= TURN_S:
            self._queue.append(read)
            return False
        self._timed(read)
        return True

    def _next_turn(self) -> None:
        self._spent_s = 0.0
        while self._queue and self._spent_s < TURN_S:
            self._timed(self._queue.popleft())
        self._scheduled = bool(self._queue)
        if self._scheduled:
            asyncio.get_running_loop().call_soon(self._next_turn)

    def _timed(self, read: Callable[[], None]) -> None:
        loop = asyncio.get_running_loop()
        began = loop.time()
        read()
        self._spent_s += loop.time() - began
