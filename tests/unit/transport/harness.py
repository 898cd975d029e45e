"""Tools of the transport's tests: a transport for a while, and a measure of how long the loop stalls."""

import asyncio
import os
import threading
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from pathlib import Path
from typing import Any

import requests

from supervisor.adapters.transport import Endpoint, ExchangeFailed, Transport
from supervisor.core.settings import Tls
from tests.support.patience import PATIENCE_S
from tests.unit.transport.peer import Peer, Step

STALL_SEEN_S = 0.25  # longer than a bare thread stands still: work that a peer must not cause takes a second
ROUNDS = 3  # a stall of our code comes in each round, and one of the machine does not
PATIENT_S = PATIENCE_S  # for exchanges that should succeed
BEAT_S = 0.002


@asynccontextmanager
async def transport(url: str, tls: Tls | None = None, **options: Any) -> AsyncIterator[Transport]:
    """Return a transport to ``url`` that is closed in the end."""
    made = Transport(Endpoint.of(url, tls or Tls()), **options)
    try:
        yield made
    finally:
        await made.close()


@asynccontextmanager
async def served(*scripts: list[Step], **options: Any) -> AsyncIterator[tuple[Peer, Transport]]:
    """Return a peer that follows these scripts, and a transport to it."""
    with Peer(*scripts) as peer:
        async with transport(peer.url, **options) as it:
            yield peer, it


def get(url: str) -> requests.PreparedRequest:
    return requests.Request("GET", url).prepare()


def put(url: str, body: bytes = b"value") -> requests.PreparedRequest:
    return requests.Request("PUT", url, data=body).prepare()


def is_prepared(it: Transport) -> bool:
    """Return whether a connection is ready for the next fresh exchange."""
    return it._spare in it._alive


async def failure_of(exchange: Awaitable[requests.Response]) -> ExchangeFailed:
    """Return the failure that this exchange must end with."""
    try:
        response = await exchange
    except ExchangeFailed as failure:
        return failure
    raise AssertionError(f"it was answered: {response.status_code}")


def ends_without_stall(scenario: Callable[[], Coroutine[Any, Any, Any]], within_s: float) -> Any:
    """Run the scenario, which must end, and not stall the loop for longer than a bare thread stands still."""
    stalls = []
    for _ in range(ROUNDS):
        began = time.monotonic()
        with bare_thread() as stood_still:
            result, stall_s = asyncio.run(_watched(scenario))
        assert time.monotonic() - began < within_s + PATIENCE_S
        if stall_s < max(stood_still) + STALL_SEEN_S:
            return result
        stalls.append((round(stall_s, 3), round(max(stood_still), 3)))
    raise AssertionError(f"the loop stalled for longer than a bare thread in each round: {stalls}")


@contextmanager
def bare_thread() -> Iterator[list[float]]:
    """Return how long each beat of a thread came late, which does nothing else within the block."""
    late, over = [0.0], threading.Event()

    def beats() -> None:
        last = time.monotonic()
        while not over.wait(BEAT_S):
            now = time.monotonic()
            late.append(now - last - BEAT_S)
            last = now

    beating = threading.Thread(target=beats)
    beating.start()
    try:
        yield late
    finally:
        over.set()
        beating.join()


async def _watched(scenario: Callable[[], Coroutine[Any, Any, Any]]) -> tuple[Any, float]:
    heartbeat = Heartbeat()
    result = await scenario()
    assert helper_threads() == []
    return result, heartbeat.stop()


class Heartbeat:
    """The longest time between two turns of the loop, less the wait for a processor."""

    def __init__(self) -> None:
        self._worst_s = 0.0
        self._last = (time.monotonic(), waited_for_processor_s())
        self._timer = asyncio.get_running_loop().call_later(BEAT_S, self._beat)

    def stop(self) -> float:
        self._timer.cancel()
        return self._measure()

    def _beat(self) -> None:
        self._measure()
        self._timer = asyncio.get_running_loop().call_later(BEAT_S, self._beat)

    def _measure(self) -> float:
        now = (time.monotonic(), waited_for_processor_s())
        gap_s = (now[0] - self._last[0]) - (now[1] - self._last[1]) - BEAT_S
        self._worst_s = max(self._worst_s, gap_s)
        self._last = now
        return self._worst_s


def waited_for_processor_s() -> float:
    """Return how long this thread was ready to run and waited. 0: the kernel does not say."""
    try:
        return int(Path("/proc/thread-self/schedstat").read_text().split()[1]) / 1e9
    except (OSError, IndexError):
        return 0.0


def descriptors() -> int:
    """Return how many descriptors this process has open, including the one for counting."""
    return len(os.listdir("/proc/self/fd"))


def helper_threads() -> list[str]:
    """Return the threads that asyncio starts for an executor or a child watcher."""
    return [each.name for each in threading.enumerate() if each.name.startswith(("asyncio", "waitpid"))]


def children() -> list[str]:
    """Return the processes that this process has started and not reaped."""
    listed = []
    for task in os.listdir("/proc/self/task"):
        with suppress(FileNotFoundError):  # a thread of the test runner has just ended
            listed += Path(f"/proc/self/task/{task}/children").read_text().split()
    return listed
