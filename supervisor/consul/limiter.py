"""A bounded number of requests at a time; further ones wait in the order of their arrival."""

import asyncio
from collections import deque


class Limiter:
    """Hands out at most ``at_most`` permits. The holder of a permit must release it."""

    def __init__(self, at_most: int) -> None:
        self._left = at_most
        self._waiting: deque[asyncio.Future[None]] = deque()

    def try_acquire(self) -> bool:
        """Take a permit without waiting; return False if none is free or other callers wait for one."""
        if self._left == 0 or self._waiting:
            return False
        self._left -= 1
        return True

    async def acquire(self, timeout_s: float) -> bool:
        """Wait for a permit; return False if there was none within ``timeout_s``."""
        if self.try_acquire():
            return True
        permit = asyncio.get_running_loop().create_future()
        self._waiting.append(permit)
        try:
            async with asyncio.timeout(timeout_s):
                await permit
        except TimeoutError:
            self._give_up(permit)
            return False
        except asyncio.CancelledError:
            self._give_up(permit)
            raise
        return True

    def _give_up(self, permit: "asyncio.Future[None]") -> None:
        if permit in self._waiting:
            self._waiting.remove(permit)
        elif not permit.cancelled():
            self.release()  # it came just as the time ran out

    def release(self) -> None:
        """Give a permit back, to the first caller that waits."""
        while self._waiting:
            permit = self._waiting.popleft()
            if not permit.done():
                permit.set_result(None)
                return
        self._left += 1
