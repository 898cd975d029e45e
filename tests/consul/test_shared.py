"""One recursive query for many keys: each subscriber gets the answer that a query of its own would give."""

import asyncio
from collections.abc import AsyncIterator, Iterable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from uuid import uuid4

import pytest

from supervisor.adapters.consul.client import (
    CONCURRENT_MAX,
    HOLDING_CONCURRENT_MAX,
    LARGE_BYTES,
    READ_BYTES_MAX,
    ConsulClient,
)
from supervisor.adapters.consul.rate import BURST, EVERY_S
from supervisor.adapters.consul.shared.grouping import WATCHES_MAX
from supervisor.adapters.consul.shared.query import SHOWN_MAX
from supervisor.adapters.consul.wanted import read_together, watched_together
from supervisor.adapters.runtime.clock import boottime
from supervisor.config import Config, ConsulSettings, LogSettings
from supervisor.core.events import Answered
from supervisor.core.outcomes import Denied, Hinted, KeyView, Outcome, SessionGone, Unknown
from supervisor.core.requests import CreateSession, HintKey, ReadKey, RenewSession, Request, WatchKey
from supervisor.core.settings import ElectionSettings, SessionSettings
from tests.support.consul import Agent
from tests.support.guarded import Guarded
from tests.support.patience import PATIENCE_S
from tests.support.proxy import Proxy
from tests.unit.transport.peer import HOLD, READ, Peer, send

MANY = WATCHES_MAX + 10
QUIET_S = 0.3
LAG_S = 0.2


@pytest.fixture
def proxy(shared_agent: Agent) -> Iterator[Proxy]:
    with Proxy(shared_agent.host, shared_agent.port) as made:
        yield made


def key_of(unique: str, number: int) -> str:
    return f"{unique}/{number:03}"


@pytest.fixture
def keys(shared_agent: Agent, unique: str) -> list[str]:
    """Return the keys of all items, which Consul has."""
    made = [key_of(unique, number) for number in range(MANY)]
    for key in made:
        assert shared_agent.kv_put(key, b"0")
    return made


@pytest.fixture
def pair(keys: list[str]) -> list[str]:
    """Return two keys that one list reads together."""
    return keys[11:13]


def config(unique: str, url: str, token: str | None = None) -> Config:
    items = [
        ElectionSettings(f"n{number}", key_of(unique, number), b"", SessionSettings("s"))
        for number in range(MANY)
    ]
    return Config(ConsulSettings(url, token=token), LogSettings(), tuple(items), "")


class Asker:
    """Sends requests through the client as the daemon does."""

    def __init__(self, exchanges: ConsulClient) -> None:
        self.exchanges = exchanges

    def watch(
        self, key: str, index: int, timeout_s: float = 40.0, lag_s: float = 0.0
    ) -> "asyncio.Task[Outcome]":
        request = WatchKey("n", boottime(), timeout_s, key, index, 30.0, consistent=True, lag_s=lag_s)
        return asyncio.create_task(self.outcome(request))

    def hint(self, key: str, index: int, lag_s: float = 0.0) -> "asyncio.Task[Outcome]":
        request = HintKey("n", boottime(), 70.0, key, index, 55.0, consistent=False, lag_s=lag_s)
        return asyncio.create_task(self.outcome(request))

    async def read(self, key: str, timeout_s: float = PATIENCE_S) -> Outcome:
        return await self.outcome(ReadKey("n", boottime(), timeout_s, key, holds=True))

    async def outcome(self, request: Request) -> Outcome:
        answers: list[Answered] = []
        await self.exchanges.begin(request, answers.append)
        [answered] = answers
        return answered.outcome

    async def read_all(self, keys: Iterable[str]) -> list[Outcome]:
        return await asyncio.gather(*map(self.read, keys))

    async def view(self, key: str) -> KeyView:
        outcome = await self.read(key)
        assert isinstance(outcome, KeyView)
        return outcome


@asynccontextmanager
async def played(settings: Config) -> AsyncIterator[Asker]:
    for together in (watched_together(settings), read_together(settings)):
        assert len(set(together.values())) < MANY
    exchanges = ConsulClient(settings, lambda level, event, why: None, boottime)
    try:
        async with asyncio.timeout(PATIENCE_S):
            yield Asker(exchanges)
    finally:
        await exchanges.close()


def targets(proxy: Proxy, part: str) -> list[str]:
    return [exchange.target for exchange in proxy.exchanges if part in exchange.target]


async def test_a_change_is_reported_to_its_own_subscribers_only(
    shared_agent: Agent, unique: str, keys: list[str]
) -> None:
    async with played(config(unique, shared_agent.url)) as asker:
        views = await asyncio.gather(*map(asker.view, keys))
        tasks = {key: asker.watch(key, view.index) for key, view in zip(keys, views, strict=True)}
        await asyncio.sleep(QUIET_S)
        shared_agent.kv_put(keys[5], b"1")
        told = await tasks[keys[5]]
        assert isinstance(told, KeyView) and told.value == b"1" and told.index == told.modify_index
        await asyncio.sleep(QUIET_S)
        assert [key for key, task in tasks.items() if task.done()] == [keys[5]]
        again = asker.watch(keys[5], told.index)
        await asyncio.sleep(QUIET_S)
        shared_agent.kv_put(keys[5], b"2")
        assert (await again).value == b"2"  # type: ignore[union-attr]


@pytest.mark.long
async def test_a_subscriber_with_a_lag_is_answered_later(
    shared_agent: Agent, unique: str, keys: list[str]
) -> None:
    """The core takes such an answer to be older by that delay."""
    key = keys[5]
    async with played(config(unique, shared_agent.url)) as asker:
        index = (await asker.view(key)).index
        at_once, later = asker.watch(key, index), asker.watch(key, index, lag_s=LAG_S)
        hint = asker.hint(key, index, lag_s=LAG_S)
        await asyncio.sleep(QUIET_S)
        changed_at = boottime()
        shared_agent.kv_put(key, b"1")
        await at_once
        assert not later.done() and not hint.done()
        await asyncio.gather(later, hint)
        assert boottime() - changed_at > LAG_S


async def test_all_subscribers_wait_with_few_connections(proxy: Proxy, unique: str, keys: list[str]) -> None:
    async with played(config(unique, proxy.url)) as asker:
        views = await asyncio.gather(*map(asker.view, keys))
        assert len(targets(proxy, "/v1/kv")) <= WATCHES_MAX
        for key, view in zip(keys, views, strict=True):
            asker.watch(key, view.index)
        await asyncio.sleep(QUIET_S)
        assert len(targets(proxy, "wait=")) <= 2 * WATCHES_MAX  # the first request finds the index


async def test_hints_share_a_query_that_any_server_answers(
    shared_agent: Agent, proxy: Proxy, unique: str, keys: list[str]
) -> None:
    """A key that is absent, or has changed already, is asked for alone, and not consistently either."""
    async with played(config(unique, proxy.url)) as asker:
        views = await asyncio.gather(*map(asker.view, keys))
        hints = [asker.hint(key, view.index) for key, view in zip(keys, views, strict=True)]
        await asyncio.sleep(QUIET_S)
        asked = targets(proxy, "wait=")
        assert len(asked) < len(keys) and all("stale=" in each and "consistent" not in each for each in asked)
        shared_agent.kv_put(keys[5], b"1")
        told = await hints[5]
        assert isinstance(told, Hinted) and told.present and told.index > views[5].index
        shared_agent.kv_delete(keys[6])
        gone = await hints[6]
        assert isinstance(gone, Hinted) and not gone.present
        assert all("stale=" in each for each in targets(proxy, f"/v1/kv/{keys[6]}?"))
        assert await asker.hint(keys[5], 0) == told


async def test_a_key_that_is_not_listed_is_read_alone(
    shared_agent: Agent, proxy: Proxy, unique: str, keys: list[str]
) -> None:
    key = keys[3]
    async with played(config(unique, proxy.url)) as asker:
        task = asker.watch(key, (await asker.view(key)).index)
        await asyncio.sleep(QUIET_S)
        shared_agent.kv_delete(key)
        gone = await task
        assert isinstance(gone, KeyView) and not gone.present
        assert targets(proxy, f"/v1/kv/{key}?consistent")
        waits = asker.watch(key, gone.index)
        await asyncio.sleep(QUIET_S)
        shared_agent.kv_put(keys[4], b"1")
        await asyncio.sleep(QUIET_S)
        assert not waits.done()
        shared_agent.kv_put(key, b"new")
        assert (await waits).value == b"new"  # type: ignore[union-attr]


async def test_a_change_that_is_past_is_reported_at_once(
    shared_agent: Agent, unique: str, keys: list[str]
) -> None:
    """The query under way waits for later changes only."""
    key, other = keys[1:3]
    async with played(config(unique, shared_agent.url)) as asker:
        known = await asker.view(key)
        watched = asker.watch(other, (await asker.view(other)).index)
        shared_agent.kv_put(key, b"1")
        await asyncio.sleep(QUIET_S)
        assert not watched.done()
        assert (await asker.watch(key, known.index)).value == b"1"  # type: ignore[union-attr]


async def test_an_answer_to_an_earlier_query_is_no_news_for_a_later_request(
    shared_agent: Agent, proxy: Proxy, unique: str, keys: list[str]
) -> None:
    """A lease counts from the time of the request."""
    early, late = keys[1:3]
    async with played(config(unique, proxy.url)) as asker:
        known = await asker.view(late)
        first = asker.watch(early, (await asker.view(early)).index)
        await asyncio.sleep(QUIET_S)
        held = proxy.hold("answer", "GET", "recurse")
        shared_agent.kv_put(late, b"1")
        await asyncio.to_thread(held.wait_caught)
        task = asker.watch(late, known.index)
        await asyncio.sleep(QUIET_S)
        alone = f"/v1/kv/{late}?consistent"
        assert not task.done() and len(targets(proxy, alone)) == 1
        held.release()
        assert (await task).value == b"1"  # type: ignore[union-attr]
        assert len(targets(proxy, alone)) == 2
        assert not first.done()


async def test_each_request_ends_by_its_deadline(shared_agent: Agent, unique: str, keys: list[str]) -> None:
    key = keys[0]
    async with played(config(unique, shared_agent.url)) as asker:
        view = await asker.view(key)
        outcome = await asker.watch(key, view.index, timeout_s=0.5)
        assert isinstance(outcome, Unknown) or outcome == view


async def test_a_key_that_a_list_hides_is_denied_by_its_own_read(tmp_path: Path, unique: str) -> None:
    with Guarded(tmp_path / "guarded") as guarded:
        shown, hidden = key_of(unique, 1), key_of(unique, 2)
        for key in (shown, hidden):
            guarded.kv_put(key, b"0")
        token = guarded.token_of(f'key "{shown}" {{ policy = "read" }}').secret
        async with played(config(unique, guarded.url, token)) as asker:
            outcomes = await asker.read_all((shown, hidden))
            assert isinstance(outcomes[0], KeyView) and outcomes[0].value == b"0"
            assert isinstance(outcomes[1], Denied)


async def test_a_token_that_consul_does_not_know_is_reported_to_all_at_once(
    tmp_path: Path, unique: str
) -> None:
    """The client must not repeat the request for each key."""
    with Guarded(tmp_path / "guarded") as guarded, Proxy(guarded.host, guarded.port) as proxy:
        made = guarded.token_of(f'key_prefix "{unique}/" {{ policy = "read" }}')
        guarded.forget(made)
        async with played(config(unique, proxy.url, made.secret)) as asker:
            keys = [key_of(unique, number) for number in range(MANY)]
            outcomes = await asker.read_all(keys)
            assert all(isinstance(outcome, Denied) and "does not know" in outcome.why for outcome in outcomes)
            assert len(targets(proxy, "/v1/kv")) <= WATCHES_MAX


async def test_each_key_is_read_alone_where_lists_are_forbidden(tmp_path: Path, unique: str) -> None:
    with Guarded(tmp_path / "guarded", key_list_policy=True) as guarded:
        keys = [key_of(unique, 1), key_of(unique, 2)]
        for key in keys:
            guarded.kv_put(key, b"0")
        token = guarded.token_of(f'key_prefix "{unique}/" {{ policy = "read" }}').secret
        async with played(config(unique, guarded.url, token)) as asker:
            outcomes = await asker.read_all(keys)
            assert [type(outcome) for outcome in outcomes] == [KeyView, KeyView]
            before = outcomes[0]
            assert await asker.watch(keys[0], before.index) == before  # type: ignore[union-attr]
            task = asker.watch(keys[0], before.index)  # type: ignore[union-attr]
            await asyncio.sleep(QUIET_S)
            assert not task.done()
            guarded.kv_put(keys[0], b"1")
            assert (await task).value == b"1"  # type: ignore[union-attr]


async def test_keys_among_many_of_other_programs_are_read_alone(
    shared_agent: Agent, proxy: Proxy, unique: str, pair: list[str]
) -> None:
    """A list of hundreds of keys takes more time than the few reads that it saves."""
    async with played(config(unique, proxy.url)) as asker:
        await asker.read_all(pair)
        assert len(targets(proxy, "recurse")) == 1
        for number in range(2 * SHOWN_MAX):
            shared_agent.kv_put(f"{pair[0]}/of-another-program/{number}", b"x")
        for _ in range(3):
            outcomes = await asker.read_all(pair)
            assert all(isinstance(outcome, KeyView) for outcome in outcomes)
        assert len(targets(proxy, "recurse")) == 2  # the second shows them all


async def test_keys_are_read_alone_after_two_lists_without_an_answer(
    proxy: Proxy, unique: str, pair: list[str]
) -> None:
    """Something between us and Consul may refuse lists alone, and a lease needs its reads."""
    async with played(config(unique, proxy.url)) as asker:
        for _ in range(2):
            proxy.reset("request", "GET", "recurse")
            outcomes = await asker.read_all(pair)
            assert all(isinstance(outcome, Unknown) for outcome in outcomes)
        proxy.reset("request", "GET", "recurse")
        outcomes = await asker.read_all(pair)
        assert all(isinstance(outcome, KeyView) for outcome in outcomes)


async def test_keys_beside_large_values_are_read_alone(
    shared_agent: Agent, proxy: Proxy, unique: str, pair: list[str]
) -> None:
    assert shared_agent.kv_put(f"{pair[0]}/of-another-program", b"x" * READ_BYTES_MAX)
    async with played(config(unique, proxy.url)) as asker:
        for _ in range(3):
            outcomes = await asker.read_all(pair)
            assert all(isinstance(outcome, KeyView) for outcome in outcomes)
        assert len(targets(proxy, "recurse")) == 1


async def test_a_list_that_does_not_arrive_in_its_time_is_not_read_again(
    unique: str, pair: list[str]
) -> None:
    """Its size is not known before it has arrived, so a part of it must do."""
    begun = b"HTTP/1.1 200 OK\r\nX-Consul-Index: 7\r\nContent-Length: 900000\r\n\r\n[" + b" " * 90_000
    with Peer([READ, send(begun), HOLD]) as peer:
        async with played(config(unique, peer.url)) as asker:
            await asyncio.gather(*(asker.read(key, 0.5) for key in pair))
            await asyncio.gather(*(asker.read(key, 0.5) for key in pair))
        asked = [line for _, line in peer.seen()]
        assert sum("recurse" in line for line in asked) == 1 and f"GET /v1/kv/{pair[1]}?consistent=" in asked


@pytest.mark.parametrize("holds", [True, False], ids=["held", "not held"])
async def test_a_renewal_of_a_holder_waits_for_nothing_that_begins(
    proxy: Proxy, unique: str, keys: list[str], holds: bool
) -> None:
    settings = SessionSettings("s")
    proxy.hold("request", path="/v1/session/create")
    async with played(config(unique, proxy.url)) as asker:
        begins = [
            asyncio.create_task(asker.outcome(CreateSession("n", boottime(), PATIENCE_S, settings)))
            for _ in range(2 * CONCURRENT_MAX)
        ]
        await asyncio.sleep(0)
        renewal = RenewSession("n", boottime(), 1.0, str(uuid4()), settings, holds)
        assert isinstance(await asker.outcome(renewal), SessionGone if holds else Unknown)
        for task in begins:
            task.cancel()


async def test_reads_of_large_keys_wait_for_each_other_alone(
    shared_agent: Agent, proxy: Proxy, unique: str, pair: list[str]
) -> None:
    large = [f"{unique}/large/{number}" for number in range(2 * HOLDING_CONCURRENT_MAX)]
    for key in large:
        assert shared_agent.kv_put(key, b"x" * LARGE_BYTES)
    async with played(config(unique, proxy.url)) as asker:
        assert all(isinstance(each, KeyView) for each in await asker.read_all(large))
        proxy.hold("request", path=f"{unique}/large")
        reads = [asyncio.create_task(asker.read(key, PATIENCE_S)) for key in large]
        await asyncio.sleep(0)
        assert (await asker.view(pair[0])).value == b"0"
        for task in reads:
            task.cancel()


async def test_a_key_that_changes_without_pause_wakes_subscribers_some_times_a_second(
    shared_agent: Agent, proxy: Proxy, unique: str
) -> None:
    key = key_of(unique, 0)
    async with played(config(unique, proxy.url)) as asker:
        shared_agent.kv_put(key, b"first")
        index, began_at = (await asker.view(key)).modify_index, boottime()
        for number in range(3 * BURST):
            shared_agent.kv_put(key, str(number).encode())
            answer = await asker.watch(key, index)
            assert isinstance(answer, KeyView)
            index = answer.modify_index
        asked, took_s = len(targets(proxy, "index=")), boottime() - began_at
        assert asked < BURST + took_s / EVERY_S + 5, f"{asked} in {took_s:.1f} s"
