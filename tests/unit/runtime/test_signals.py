"""The signals that the daemon handles: none is lost, however many come before the loop can handle them."""

import asyncio
import os
import signal
from collections.abc import Iterator

import pytest

from supervisor.adapters.runtime.signals import HANDLED, listen
from tests.support.patience import PATIENCE_S

BURST = 100_000  # more than any pipe or socket of the loop takes


@pytest.fixture(autouse=True)
def as_before() -> Iterator[None]:
    """Restore the handlers that the tests themselves need."""
    before = {number: signal.getsignal(number) for number in HANDLED}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


async def test_a_burst_of_one_signal_loses_no_other(capfd: pytest.CaptureFixture[str]) -> None:
    heard: list[str] = []
    stopped = asyncio.Event()
    meanings = {signal.SIGTERM: stopped.set, signal.SIGHUP: lambda: heard.append("reload")}
    listen(asyncio.get_running_loop(), meanings)
    for _ in range(BURST):
        os.kill(os.getpid(), signal.SIGHUP)
    os.kill(os.getpid(), signal.SIGTERM)
    async with asyncio.timeout(PATIENCE_S):
        await stopped.wait()
    assert heard == ["reload"]
    assert capfd.readouterr().err == ""


async def test_each_later_signal_is_handled_again() -> None:
    heard: list[int] = []
    loop, enough = asyncio.get_running_loop(), asyncio.Event()

    def hear() -> None:
        heard.append(1)
        if len(heard) < 3:
            os.kill(os.getpid(), signal.SIGHUP)
        else:
            enough.set()

    listen(loop, {signal.SIGHUP: hear})
    os.kill(os.getpid(), signal.SIGHUP)
    async with asyncio.timeout(PATIENCE_S):
        await enough.wait()
    assert len(heard) == 3
