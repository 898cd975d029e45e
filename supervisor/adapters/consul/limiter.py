"""A limit on the requests at a time. Further requests wait in the order of their arrival."""

import asyncio
from collections import deque


class Limiter:
    """A supply of ``at_most`` permits. A caller must release the permit that it has acquired."""

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
            self.release()  # the permit came just as the time ran out

    def release(self) -> None:
        """Give a permit back. The first caller that waits gets it."""
        while self._waiting:
            permit = self._waiting.popleft()
            if not permit.done():
                permit.set_result(None)
                return
        self._left += 1
