"""The limiter of requests: a bounded number at a time, and no waiter is forgotten."""

import asyncio
from collections.abc import Coroutine
from typing import Any

from supervisor.consul.limiter import Limiter
from tests.support.patience import PATIENCE_S


def run(play: Coroutine[Any, Any, None]) -> None:
    async def within() -> None:
        async with asyncio.timeout(PATIENCE_S):
            await play

    asyncio.run(within())


def test_those_beyond_wait_in_the_order_in_which_they_came() -> None:
    async def play() -> None:
        turns, order = Limiter(1), list[int]()

        async def take(number: int) -> None:
            assert await turns.acquire(9.0)
            order.append(number)

        assert turns.try_acquire() and not turns.try_acquire()
        waiting = [asyncio.create_task(take(number)) for number in range(3)]
        await asyncio.sleep(0)
        for _ in range(3):
            turns.release()
            assert not turns.try_acquire() or len(order) == 3
            await asyncio.sleep(0.01)
        await asyncio.gather(*waiting)
        assert order == [0, 1, 2]

    run(play())


def test_one_that_came_too_late_goes_to_the_next() -> None:
    async def play() -> None:
        turns = Limiter(1)
        assert turns.try_acquire()
        first, second = (asyncio.create_task(turns.acquire(each)) for each in (0.01, 9.0))
        assert not await first
        cancelled = asyncio.create_task(turns.acquire(9.0))
        await asyncio.sleep(0)
        turns.release()
        assert await second
        turns.release()
        cancelled.cancel()  # with its turn just given
        await asyncio.gather(cancelled, return_exceptions=True)
        assert turns.try_acquire()

    run(play())
