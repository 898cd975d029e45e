"""The limiter of requests: a bounded number at a time, and no request is forgotten."""

import asyncio

from supervisor.adapters.consul.limiter import Limiter
from tests.support.patience import PATIENCE_S


async def test_requests_beyond_the_limit_wait_in_the_order_of_their_arrival() -> None:
    async with asyncio.timeout(PATIENCE_S):
        limiter, order = Limiter(1), list[int]()

        async def take(number: int) -> None:
            assert await limiter.acquire(PATIENCE_S)
            order.append(number)

        assert limiter.try_acquire() and not limiter.try_acquire()
        waiting = [asyncio.create_task(take(number)) for number in range(3)]
        await asyncio.sleep(0)
        for _ in range(3):
            limiter.release()
            assert not limiter.try_acquire() or len(order) == 3
            await asyncio.sleep(0.01)
        await asyncio.gather(*waiting)
        assert order == [0, 1, 2]


async def test_a_permit_whose_waiter_has_given_up_goes_to_the_next() -> None:
    async with asyncio.timeout(PATIENCE_S):
        limiter = Limiter(1)
        assert limiter.try_acquire()
        first, second = (asyncio.create_task(limiter.acquire(each)) for each in (0.01, PATIENCE_S))
        assert not await first
        cancelled = asyncio.create_task(limiter.acquire(PATIENCE_S))
        await asyncio.sleep(0)
        limiter.release()
        assert await second
        limiter.release()
        cancelled.cancel()  # with its permit just given
        await asyncio.gather(cancelled, return_exceptions=True)
        assert limiter.try_acquire()
