"""A limit on the requests at a time. Further requests wait in the order of their arrival."""

import asyncio
from collections import deque


class Limiter:
    """A supply of ``at_most`` permits. A caller must release the permit that it has acquired."""

    def __init__(self, at_most: int) -> None:
        self._left = at_most
        self._waiting: deque[asyncio.Future[bool]] = deque()

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
        loop = asyncio.get_running_loop()
        permit: asyncio.Future[bool] = loop.create_future()
        self._waiting.append(permit)
        expiry = loop.call_later(timeout_s, self._give_up, permit)
        try:
            return await permit
        except asyncio.CancelledError:
            if not permit.cancelled() and permit.result():
                self.release()  # the permit came just before
            self._give_up(permit)
            raise
        finally:
            expiry.cancel()

    def _give_up(self, permit: "asyncio.Future[bool]") -> None:
        if permit in self._waiting:
            self._waiting.remove(permit)
            if not permit.done():
                permit.set_result(False)

    def release(self) -> None:
        """Give a permit back. The first caller that waits gets it."""
        while self._waiting:
            permit = self._waiting.popleft()
            if not permit.done():
                permit.set_result(True)
                return
        self._left += 1
