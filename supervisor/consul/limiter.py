"""Turns: so many at a time, the others one after the other, in the order in which they came."""

import asyncio
from collections import deque


class Turns:
    """At most ``at_most`` are taken at any time. Whoever takes one gives it back."""

    def __init__(self, at_most: int) -> None:
        self._left = at_most
        self._waiting: deque[asyncio.Future[None]] = deque()

    def take(self) -> bool:
        """Whether there was one to be had at once; nobody overtakes who waits."""
        if self._left == 0 or self._waiting:
            return False
        self._left -= 1
        return True

    async def wait(self, timeout_s: float) -> bool:
        """Whether there was one within that time."""
        if self.take():
            return True
        turn = asyncio.get_running_loop().create_future()
        self._waiting.append(turn)
        try:
            async with asyncio.timeout(timeout_s):
                await turn
        except TimeoutError:
            self._give_up(turn)
            return False
        except asyncio.CancelledError:
            self._give_up(turn)
            raise
        return True

    def _give_up(self, turn: "asyncio.Future[None]") -> None:
        if turn in self._waiting:
            self._waiting.remove(turn)
        elif not turn.cancelled():
            self.give()  # it came just as the time ran out

    def give(self) -> None:
        """Somebody else may have it."""
        while self._waiting:
            turn = self._waiting.popleft()
            if not turn.done():
                turn.set_result(None)
                return
        self._left += 1
