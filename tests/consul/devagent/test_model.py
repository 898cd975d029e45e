"""Behaviour that no client can show on a real agent in a test: restarts, leaders, nodes, a virtual clock."""

import json
from typing import Any

from supervisor.rehearsal.devagent.api.call import Settings
from supervisor.rehearsal.devagent.model import JITTER_SHARE, Waiting
from supervisor.reporting.http_server import HttpAnswer, HttpRequest
from tests.consul.devagent.sequences import index_of
from tests.support.faulty_consul import HOLD_S, FaultyModel


class Asked:
    """A model, and its requests at given times."""

    def __init__(self, seed: int = 0) -> None:
        self.model = FaultyModel(Settings(seed=seed))
        self.now = 0.0

    def ask(self, method: str, path: str, body: str = "", node: str = "") -> HttpAnswer | Waiting:
        return self.model.handle(HttpRequest(method, f"/v1{path}", (), body.encode()), self.now, node)

    def json(self, method: str, path: str, body: str = "", node: str = "") -> Any:
        answer = self.ask(method, path, body, node)
        assert isinstance(answer, HttpAnswer), answer
        return json.loads(answer.body)

    def session(self, body: str = "{}", node: str = "") -> str:
        return str(self.json("PUT", "/session/create", body, node)["ID"])

    def acquire(self, key: str, session: str) -> bool:
        return bool(self.json("PUT", f"/kv/{key}?acquire={session}"))

    def holder(self, key: str) -> str:
        return str(self.json("GET", f"/kv/{key}")[0].get("Session", ""))

    def alive(self, session: str) -> bool:
        return bool(self.json("GET", f"/session/info/{session}"))

    def wait(self, path: str) -> Waiting:
        waiting = self.ask("GET", path)
        assert isinstance(waiting, Waiting), waiting
        return waiting

    def over(self, now: float) -> list[tuple[int, int, int]]:
        """List the answers up to this time: (number, status, index)."""
        self.now = now
        return [(kept.number, answer.status, index_of(answer)) for kept, answer in self.model.advance(now)]


def test_a_restart_replays_the_delays_of_the_log_and_refuses_even_the_holder() -> None:
    """As E7d in 1.8.7: for 30 s Consul refuses the holder's own acquire, although it holds the key."""
    asked = Asked()
    old, new = asked.session('{"LockDelay":"30s"}'), asked.session()
    assert asked.acquire("k", old)
    asked.ask("PUT", f"/session/destroy/{old}")
    asked.now = 40.0
    assert asked.acquire("k", new)
    asked.model.restart(50.0)
    asked.now = 79.9
    assert asked.holder("k") == new and not asked.acquire("k", new)
    asked.now = 80.1
    assert asked.acquire("k", new)


def test_a_replayed_delay_that_ends_cuts_a_newer_one_short() -> None:
    """Each delay removes at its end any delay that the key has then, so 30 s become 2."""
    asked = Asked()
    first = asked.session('{"LockDelay":"5s"}')
    assert asked.acquire("k", first)
    asked.ask("PUT", f"/session/destroy/{first}")
    asked.now = 10.0
    holder, rival = asked.session('{"LockDelay":"30s"}'), asked.session()
    assert asked.acquire("k", holder)
    asked.model.restart(20.0)
    asked.now = 23.0
    asked.ask("PUT", f"/session/destroy/{holder}")
    assert not asked.acquire("k", rival)
    asked.now = 25.1
    assert asked.acquire("k", rival)


def test_a_restart_begins_the_ttl_of_every_session_anew_and_drops_waiting_queries() -> None:
    asked = Asked()
    session = asked.session('{"TTL":"10s"}')
    asked.ask("PUT", "/kv/k", "v")
    waiting = asked.wait("/kv/k?index=9&wait=60s")
    assert asked.model.restart(15.0) == (waiting,)
    assert asked.over(34.9) == [] and asked.alive(session)
    asked.over(35.1)
    assert not asked.alive(session)


def test_a_change_of_leader_fails_the_queries_that_wait() -> None:
    """The TTL of every session begins anew, and lock-delays stay as they were."""
    asked = Asked()
    session, rival = asked.session('{"TTL":"10s","LockDelay":"15s"}'), asked.session()
    assert asked.acquire("k", session)
    waiting = asked.wait("/kv/k?index=10&wait=600s")
    asked.now = 5.0
    asked.model.change_leader(5.0)
    assert asked.over(5.0) == [(waiting.number, 500, 0)]
    assert asked.over(24.9) == [] and asked.alive(session)
    asked.over(25.1)
    assert not asked.alive(session)
    asked.now = 39.9
    assert not asked.acquire("k", rival)
    asked.now = 40.1
    assert asked.acquire("k", rival)


def test_without_a_leader_requests_are_held_and_no_session_ends() -> None:
    asked = Asked()
    session = asked.session('{"TTL":"10s"}')
    asked.model.lose_leader(1.0)
    asked.now = 2.0
    held = asked.wait("/kv/k")
    assert asked.over(2.0 + HOLD_S) == [(held.number, 500, 0)]
    asked.now = 30.0
    renewal = asked.ask("PUT", f"/session/renew/{session}")
    assert isinstance(renewal, Waiting)
    asked.model.elect_leader(31.0)
    assert asked.over(31.0) == [(renewal.number, 200, 0)]


def test_a_failed_node_ends_sessions_with_serfhealth_and_a_leaving_node_ends_all() -> None:
    asked = Asked()
    asked.model.join("other", 0.0)
    bound, free = asked.session(node="other"), asked.session('{"NodeChecks":[]}', node="other")
    here = asked.session()
    asked.model.fail("other", 1.0)
    assert [asked.alive(session) for session in (bound, free, here)] == [False, True, True]
    answer = asked.ask("PUT", "/session/create", node="other")
    assert isinstance(answer, HttpAnswer) and answer.body == b"Check 'serfHealth' is in critical state"
    asked.model.recover("other", 2.0)
    assert asked.alive(asked.session(node="other"))
    asked.model.leave("other", 3.0)
    assert [asked.alive(session) for session in (free, here)] == [False, True]


def test_waiting_queries_are_answered_in_their_order_and_at_the_end_of_the_wait() -> None:
    asked = Asked()
    session = asked.session('{"TTL":"10s","LockDelay":"0"}')  # Go takes a bare 0
    assert asked.acquire("k", session) and asked.json("GET", "/kv/k?wait=0")
    first, second = asked.wait("/kv/k?index=9&wait=100s"), asked.wait("/kv/?recurse&index=9&wait=100s")
    short = asked.wait("/kv/k?index=9&wait=8s")
    assert 8.0 <= short.until <= 8.0 * (1 + JITTER_SHARE) and asked.model.deadline() == short.until
    assert asked.over(19.9) == [(short.number, 200, 9)]
    assert asked.model.deadline() == 20.0
    assert asked.over(20.0) == [(first.number, 200, 10), (second.number, 200, 10)]
    assert asked.model.deadline() == float("inf")


def test_the_index_of_a_list_goes_backwards_when_tombstones_are_dropped() -> None:
    asked = Asked()
    asked.ask("PUT", "/kv/p/a", "v")
    asked.ask("PUT", "/kv/p/b", "v")
    asked.ask("DELETE", "/kv/p/b")

    def index() -> int:
        answer = asked.ask("GET", "/kv/p/?recurse")
        assert isinstance(answer, HttpAnswer)
        return index_of(answer)

    before = index()
    asked.over(1000.0)
    assert index() == before - 2


def test_equal_requests_give_equal_answers_and_another_seed_gives_other_ids() -> None:
    def told(seed: int) -> list[object]:
        asked = Asked(seed)
        session = asked.session('{"TTL":"10s"}')
        return [
            session,
            asked.acquire("k", session),
            asked.wait("/kv/k?index=9&wait=10s").until,
            asked.over(60.0),
        ]

    assert told(1) == told(1) and told(1)[0] != told(2)[0]


def test_an_abandoned_wait_is_dropped() -> None:
    asked = Asked()
    asked.ask("PUT", "/kv/k", "v")
    asked.model.abandon(asked.wait("/kv/k?index=8&wait=60s"))
    asked.ask("PUT", "/kv/k", "w")
    assert asked.over(100.0) == [] and not asked.model.waiting
