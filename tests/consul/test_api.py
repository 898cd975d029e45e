"""Requests to a real Consul, and the meaning of its responses.

Requests are encoded by the product, sent by another client, and the responses are decoded by the product. No
response is written by hand, except those that no Consul gives.
"""

import base64
import http.client
import json
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any, get_args
from urllib.parse import urlsplit

import pytest
import requests

from supervisor.adapters.consul import fleet_requests, presence, semaphore, sessions
from supervisor.adapters.consul.codec import Codec
from supervisor.adapters.consul.semaphore import SEMAPHORE_FLAGS
from supervisor.adapters.consul.token import Token
from supervisor.commands.check.connection import impossible_write
from supervisor.config import ConsulSettings
from supervisor.core import requests as req
from supervisor.core.outcomes import (
    Created,
    Denied,
    Done,
    Failed,
    Hinted,
    Ineligible,
    KeyView,
    LockDelayed,
    LostRace,
    Outcome,
    Refused,
    SessionAlive,
    SessionAltered,
    SessionGone,
    SessionInfo,
    Unknown,
    Won,
)
from supervisor.core.requests import (
    Acquire,
    CreateSession,
    DestroySession,
    HintKey,
    ReadKey,
    ReadSession,
    Release,
    RenewSession,
    Request,
    WatchKey,
)
from supervisor.core.settings import ServiceSettings, SessionSettings
from tests.support.consul import WAYS, Agent
from tests.support.guarded import guarded_agent
from tests.support.patience import PATIENCE_S

NOBODY = "11111111-2222-3333-4444-555555555555"
ASKED = SessionSettings("n", ttl_s=60.0, lock_delay_s=0.0)  # the fields of Asker.create
LOCK_FLAGS = 3304740253564472344  # api.LockFlagValue of Consul's own client
EVERY_REQUEST = [
    CreateSession("e", 0.0, 1.0, SessionSettings("n")),
    RenewSession("e", 0.0, 1.0, NOBODY, ASKED),
    DestroySession("e", 0.0, 1.0, NOBODY),
    ReadSession("e", 0.0, 1.0, NOBODY),
    Acquire("e", 0.0, 1.0, "key", NOBODY, b""),
    Release("e", 0.0, 1.0, "key", NOBODY, b""),
    ReadKey("e", 0.0, 1.0, "key"),
    WatchKey("e", 0.0, 1.0, "key", 7, 30.0, True),
    HintKey("e", 0.0, 1.0, "key", 7, 55.0, False),
]
ROSTER = req.SlotRecord(1)
SERVICE = ServiceSettings("test-api", "test-api")
EVERY_OTHER_REQUEST = [
    req.Rewrite("e", 0.0, 1.0, "key", NOBODY, b""),
    req.ReadSlots("e", 0.0, 1.0, "p"),
    req.WatchSlots("e", 0.0, 1.0, "p", 7, 30.0, True),
    req.JoinSemaphore("e", 0.0, 1.0, "p", NOBODY, b"", ROSTER, 3),
    req.TakeSlot("e", 0.0, 1.0, "p", NOBODY, ROSTER, 3),
    req.LeaveSemaphore("e", 0.0, 1.0, "p", NOBODY, ROSTER, 3),
    semaphore.WriteSlotRecord("e", 0.0, 1.0, "p", ROSTER, 3),
    sessions.ReadSessions("e", 0.0, 1.0),
    fleet_requests.ReadHistory("e", 0.0, 1.0, "p/history/e", "p"),
    fleet_requests.WriteHistory("e", 0.0, 1.0, "p/history/e", "p", b"{}", 3),
    fleet_requests.ReadOrder("e", 0.0, 1.0, "p/orders/pause/e", "p"),
    fleet_requests.WriteOrder("e", 0.0, 1.0, "p/orders/pause/e", "p", b"{}", 3),
    fleet_requests.WriteOrder("e", 0.0, 1.0, "p/orders/pause/e", "p", None, 3),
    req.ReadMaintenance("e", 0.0, 1.0),
    req.ReadService("e", 0.0, 1.0, SERVICE),
    req.RegisterService("e", 0.0, 1.0, SERVICE, 3.0),
    req.PassService("e", 0.0, 1.0, SERVICE),
    req.DeregisterService("e", 0.0, 1.0, SERVICE),
    req.FailService("e", 0.0, 1.0, SERVICE),
    req.FindService("e", 0.0, 1.0, SERVICE),
    presence.RegisterPresence("e", 0.0, 1.0, SERVICE, 3.0),
    presence.TellPresence("e", 0.0, 1.0, SERVICE),
]


def codec(**settings: Any) -> Codec:
    """Return a codec whose requests no test sends."""
    consul = ConsulSettings("http://h", **settings)
    return Codec(consul, "http://h", Token(consul))


class Asker:
    """Encodes, sends and decodes requests.

    key: a key of this test alone.
    """

    def __init__(self, agent: Agent, key: str, token: str | None = None) -> None:
        settings = ConsulSettings(agent.url, token=token)
        self.agent = agent
        self.key = key
        self.consul = Codec(settings, agent.url, Token(settings))

    def ask(self, action: Request) -> Outcome:
        return self.consul.decode(action, sent(self.consul.encode(action)))

    def create(self, **settings: object) -> Outcome:
        base: dict[str, object] = {"name": self.key, "ttl_s": 60.0, "lock_delay_s": 0.0}
        return self.ask(CreateSession("e", 0.0, 1.0, SessionSettings(**{**base, **settings})))  # type: ignore[arg-type]

    def session(self, **settings: object) -> str:
        outcome = self.create(**settings)
        assert isinstance(outcome, Created), outcome
        return outcome.session

    def acquire(self, session: str, value: bytes = b"mine") -> Outcome:
        entry = self.agent.kv_get(self.key)
        index = 0 if entry is None else entry["ModifyIndex"]
        return self.ask(Acquire("e", 0.0, 1.0, self.key, session, value, index))

    def release(self, session: str, value: bytes = b"mine") -> Outcome:
        return self.ask(Release("e", 0.0, 1.0, self.key, session, value))

    def read(self) -> Outcome:
        return self.ask(ReadKey("e", 0.0, 1.0, self.key))


def sent(request: requests.PreparedRequest) -> requests.Response:
    """Return Consul's response, by the standard library's client."""
    assert request.url is not None and request.method is not None
    url = urlsplit(request.url)
    with closing(http.client.HTTPConnection(url.hostname or "", url.port, timeout=PATIENCE_S)) as connection:
        target = f"{url.path}?{url.query}" if url.query else url.path
        connection.request(request.method, target, request.body, dict(request.headers))
        answer = connection.getresponse()
        return response(answer.status, answer.read(), dict(answer.headers))


def response(status: int, body: bytes = b"", headers: dict[str, str] | None = None) -> requests.Response:
    made = requests.Response()
    made.status_code = status
    made._content = body
    made.headers.update(headers or {})
    return made


@pytest.fixture
def asker(either_agent: Agent, unique: str) -> Asker:
    return Asker(either_agent, unique)


# --- sessions ------------------------------------------------------------------------------------


def test_a_session_is_made_as_requested(asker: Asker) -> None:
    settings = {"ttl_s": 1.5, "lock_delay_s": 2.5, "behavior": "delete", "node_checks": ("serfHealth",)}
    session = asker.session(**settings)
    made = next(one for one in asker.agent.sessions() if one["ID"] == session)
    assert made["Name"] == asker.key
    assert (made["TTL"], made["LockDelay"], made["Behavior"]) == ("1500ms", 2_500_000_000, "delete")
    assert made["NodeChecks"] == ["serfHealth"]


def test_without_checks_a_session_is_bound_to_none_and_without_ttl_to_no_time(asker: Asker) -> None:
    session = asker.session(ttl_s=None)
    made = next(one for one in asker.agent.sessions() if one["ID"] == session)
    assert not made["NodeChecks"] and not made["ServiceChecks"] and made["TTL"] in ("", "0s")
    asker.agent.session_destroy(session)


@pytest.mark.parametrize(
    "settings", [{"ttl_s": 0.5}, {"ttl_s": 100_000.0}, {"node_checks": ("no-such-check",)}, {"behavior": "x"}]
)
def test_a_session_that_consul_refuses_is_reported_as_refused(
    asker: Asker, settings: dict[str, object]
) -> None:
    outcome = asker.create(**settings)
    assert isinstance(outcome, Refused) and outcome.why.startswith("500 "), outcome
    assert ("rpc error making call: " in outcome.why) is asker.agent.is_client


def test_a_session_in_a_datacenter_that_consul_does_not_know_is_refused(asker: Asker) -> None:
    settings = ConsulSettings(asker.agent.url, datacenter="elsewhere")
    elsewhere = Codec(settings, asker.agent.url, Token(settings))
    outcome = elsewhere.decode(EVERY_REQUEST[0], sent(elsewhere.encode(EVERY_REQUEST[0])))
    assert isinstance(outcome, Refused) and "No path to datacenter" in outcome.why


def test_a_session_that_a_client_agent_does_not_make_in_another_datacenter_is_refused(asker: Asker) -> None:
    """Newer versions word the refusal so."""
    said = b"cross datacenter lock must be created at server agent"
    assert isinstance(asker.consul.decode(EVERY_REQUEST[0], response(500, said)), Refused)


def test_a_critical_check_makes_a_node_ineligible(asker: Asker) -> None:
    check = {"Name": asker.key, "ID": asker.key, "TTL": "60s", "Status": "critical"}
    assert asker.agent.call("PUT", "/agent/check/register", check).status == 200
    asker.agent.wait_check(asker.key)
    outcome = asker.create(node_checks=(asker.key,))
    assert isinstance(outcome, Ineligible) and "critical" in outcome.why
    assert ("rpc error making call: " in outcome.why) is asker.agent.is_client


def test_a_renewal_shows_whether_the_session_lives(asker: Asker) -> None:
    session = asker.session()
    assert asker.ask(RenewSession("e", 0.0, 1.0, session, ASKED)) == SessionAlive()
    assert asker.ask(DestroySession("e", 0.0, 1.0, session)) == Done()
    assert asker.ask(RenewSession("e", 0.0, 1.0, session, ASKED)) == SessionGone()
    assert asker.ask(DestroySession("e", 0.0, 1.0, session)) == Done()


@pytest.mark.parametrize(
    "asked",
    [
        SessionSettings("n", 1.5, 2.5, "delete", ("serfHealth",)),
        SessionSettings("n", 60.0, 90.0),
        SessionSettings("n", None, 0.0),
        SessionSettings("n", 86_400.0, 0.0004),
    ],
)
def test_a_session_that_consul_made_as_requested_is_alive(asker: Asker, asked: SessionSettings) -> None:
    """Consul writes some fields in another form (1m0s, null, nanoseconds), and a TTL may be absent."""
    made = asker.ask(CreateSession("e", 0.0, 1.0, asked))
    assert isinstance(made, Created)
    assert asker.ask(RenewSession("e", 0.0, 1.0, made.session, asked)) == SessionAlive()
    assert asker.ask(DestroySession("e", 0.0, 1.0, made.session)) == Done()


def renewal(**changes: object) -> bytes:
    """Return the response to a renewal of a session as ASKED, in the words of Consul 1.8.7."""
    session = {"ID": NOBODY, "Name": "n", "Node": "n1", "LockDelay": 0, "Behavior": "release", "TTL": "60s"}
    return json.dumps([{**session, "NodeChecks": [], "ServiceChecks": None, **changes}]).encode()


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, SessionAlive),
        ({"TTL": "1m0s"}, SessionAlive),
        ({"TTL": "60.0s"}, SessionAlive),
        ({"TTL": "60000ms", "NodeChecks": None}, SessionAlive),
        ({"ServiceChecks": [{"ID": "web", "Namespace": ""}]}, SessionAltered),
        ({"Checks": ["serfHealth"]}, SessionAltered),
        ({"LockDelay": 15_000_000_000}, SessionAlive),
        ({"LockDelay": "0s"}, Failed),
        ({"LockDelay": None}, Failed),
        ({"TTL": "soon"}, Failed),
        ({"TTL": 60}, Failed),
        ({"Behavior": "keep"}, Failed),
        ({"NodeChecks": "serfHealth"}, Failed),
        ({"NodeChecks": [7]}, Failed),
        ({"ServiceChecks": ["web"]}, Failed),
        ({"ID": "another"}, Failed),
    ],
)
def test_a_renewal_is_compared_with_the_requested_session(
    changes: dict[str, object], expected: type[Outcome]
) -> None:
    """Durations are compared by their length, and a field in an unknown form proves nothing."""
    consul = codec()
    outcome = consul.decode(EVERY_REQUEST[1], response(200, renewal(**changes)))
    assert type(outcome) is expected, outcome


@pytest.mark.parametrize(
    "made",
    ["", "s", "11111111-2222-3333-4444-55555555555", f"{NOBODY}\n", "../../kv/x", "x" * 100_000, "\ud800",
     NOBODY.replace("1", "g")],
)  # fmt: skip
def test_an_id_that_is_no_uuid_is_no_session(made: str) -> None:
    """Such an id would get into paths, records and the environment of hooks."""
    consul = codec()
    outcome = consul.decode(EVERY_REQUEST[0], response(200, json.dumps({"ID": made}).encode()))
    assert isinstance(outcome, Unknown) and "no UUID" in outcome.why


def test_a_session_shows_its_lock_delay_and_an_ended_session_shows_nothing(asker: Asker) -> None:
    session = asker.session(lock_delay_s=1.5, name="seen")
    assert asker.ask(ReadSession("e", 0.0, 1.0, session)) == SessionInfo(1.5)
    assert asker.ask(ReadSession("e", 0.0, 1.0, NOBODY)) == SessionInfo(None)


# --- the lock ------------------------------------------------------------------------------------


def test_an_acquire_that_succeeds_gives_the_indexes_of_that_moment(asker: Asker) -> None:
    session = asker.session()
    won = asker.acquire(session)
    entry = asker.agent.kv_get(asker.key)
    assert entry is not None
    assert won == Won(entry["CreateIndex"], entry["ModifyIndex"], 1)
    assert (entry["Session"], entry["Value"], entry["Flags"]) == (session, b"mine", LOCK_FLAGS)
    assert asker.acquire(session) == won


def test_a_lock_that_another_holds_is_a_race(asker: Asker) -> None:
    first, second = asker.session(), asker.session()
    asker.acquire(first)
    assert asker.acquire(second) == LostRace()


def test_a_lock_in_its_lock_delay_is_told_from_a_race(asker: Asker) -> None:
    first, second = asker.session(lock_delay_s=30.0), asker.session()
    asker.acquire(first)
    asker.ask(DestroySession("e", 0.0, 1.0, first))
    assert asker.acquire(second) == LockDelayed()


def test_a_dead_session_cannot_acquire(asker: Asker) -> None:
    assert asker.acquire(NOBODY) == SessionGone()


EITHER_FORM = pytest.mark.parametrize("value", [b"left", b""])


@EITHER_FORM
def test_a_release_keeps_value_and_flags_and_may_be_repeated(asker: Asker, value: bytes) -> None:
    session = asker.session()
    won = asker.acquire(session)
    assert asker.release(session, value) == Done()
    entry = asker.agent.kv_get(asker.key)
    assert entry is not None and isinstance(won, Won)
    assert (entry["Session"], entry["Value"], entry["Flags"]) == ("", value, LOCK_FLAGS)
    assert (entry["CreateIndex"], entry["LockIndex"]) == (won.create_index, won.lock_index)
    assert entry["ModifyIndex"] > won.modify_index
    assert isinstance(asker.release(session, value), Done)
    assert isinstance(asker.acquire(asker.session()), Won), "no lock-delay follows a release"


@EITHER_FORM
def test_a_release_of_a_key_that_is_not_ours_counts_as_done(asker: Asker, value: bytes) -> None:
    """There is nothing to release, so a repeated release may end."""
    first, second = asker.session(), asker.session()
    assert isinstance(asker.release(first, value), Done)
    assert asker.agent.kv_get(asker.key) is None
    asker.acquire(first)
    assert isinstance(asker.release(second, value), Done)
    entry = asker.agent.kv_get(asker.key)
    assert entry is not None and entry["Session"] == first
    asker.agent.session_destroy(second)
    assert isinstance(asker.release(second, value), Done), "of a session that is gone"


@EITHER_FORM
def test_no_value_is_sent_without_a_body(asker: Asker, value: bytes) -> None:
    """Newer versions may refuse a PUT of a key without a body."""
    sent_by = asker.consul.encode(Release("e", 0.0, 1.0, "k", NOBODY, value))
    assert sent_by.body and (f"/v1/{'kv/k' if value else 'txn'}" in str(sent_by.url))


@pytest.mark.parametrize("value", [b"", b"\x00\xff\xfe", '{"Node": "é"}'.encode(), b"x" * 65_536])
def test_any_value_comes_back_as_it_was(asker: Asker, value: bytes) -> None:
    session = asker.session()
    asker.acquire(session, value)
    view = asker.read()
    assert isinstance(view, KeyView) and view.value == value == view.leader


# --- reading -------------------------------------------------------------------------------------


def test_a_read_shows_whether_a_key_is_absent_held_or_free(asker: Asker) -> None:
    absent = asker.read()
    assert isinstance(absent, KeyView) and absent == KeyView(absent.index) and not absent.present
    session = asker.session()
    won = asker.acquire(session)
    held = asker.read()
    assert isinstance(held, KeyView) and isinstance(won, Won)
    assert (held.session, held.leader, held.lock_index) == (session, b"mine", 1)
    assert (held.create_index, held.modify_index) == (won.create_index, won.modify_index)
    asker.release(session)
    free = asker.read()
    assert isinstance(free, KeyView) and free.present
    assert (free.session, free.value, free.leader) == (None, b"mine", None)


def test_a_key_of_any_allowed_characters_is_read_and_written_as_one(asker: Asker) -> None:
    asker.key = f"{asker.key}/a.b-c_d,e/F"
    asker.acquire(asker.session())
    view = asker.read()
    assert isinstance(view, KeyView) and view.present
    assert asker.agent.kv_get(asker.key) is not None


@pytest.mark.parametrize("consistent", [True, False])
def test_a_watch_waits_for_its_index_and_no_longer_than_requested(asker: Asker, consistent: bool) -> None:
    asker.agent.kv_put(asker.key, b"1")
    first = asker.ask(WatchKey("e", 0.0, 1.0, asker.key, 0, 30.0, consistent))
    assert isinstance(first, KeyView)
    same = asker.ask(WatchKey("e", 0.0, 1.0, asker.key, first.index, 0.2, consistent))
    assert same == first
    asker.agent.kv_put(asker.key, b"2")
    second = asker.ask(WatchKey("e", 0.0, 1.0, asker.key, first.index, 30.0, consistent))
    assert isinstance(second, KeyView) and second.index > first.index and second.value == b"2"


def test_a_hint_is_answered_by_any_server_and_shows_the_index_alone(asker: Asker) -> None:
    absent = asker.ask(HintKey("e", 0.0, 1.0, asker.key, 0, 30.0, False))
    assert isinstance(absent, Hinted) and not absent.present
    asker.agent.kv_put(asker.key, b"1")
    told = asker.ask(HintKey("e", 0.0, 1.0, asker.key, absent.index, 30.0, False))
    view = asker.read()
    assert isinstance(view, KeyView) and told == Hinted(view.modify_index, present=True)
    query = codec().encode(HintKey("e", 0.0, 1.0, "key", 7, 55.0, False)).url
    assert query == "http://h/v1/kv/key?index=7&wait=55s&stale="


# --- access --------------------------------------------------------------------------------------


@pytest.fixture(params=WAYS)
def guarded(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Agent]:
    with guarded_agent(tmp_path, request.param) as agent:
        yield agent


def test_a_client_without_a_right_is_denied_and_its_session_never_called_dead(guarded: Agent) -> None:
    """The client has no token, or one that Consul does not know, and session and key exist."""
    owner = Asker(guarded, "key", guarded.token)
    session = owner.session()
    assert isinstance(owner.acquire(session), Won)
    for token in (None, NOBODY):
        stranger = Asker(guarded, "key", token)
        outcomes = [
            stranger.create(),
            stranger.ask(RenewSession("e", 0.0, 1.0, session, ASKED)),
            stranger.ask(DestroySession("e", 0.0, 1.0, session)),
            stranger.acquire(session),
            stranger.release(session),
            stranger.read(),
            stranger.ask(WatchKey("e", 0.0, 1.0, "key", 0, 30.0, True)),
        ]
        assert all(isinstance(outcome, Denied) for outcome in outcomes), outcomes
    assert owner.ask(RenewSession("e", 0.0, 1.0, session, ASKED)) == SessionAlive()


# --- requests ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "action", EVERY_REQUEST + EVERY_OTHER_REQUEST, ids=lambda action: type(action).__name__
)
def test_every_request_carries_the_token_in_a_header_and_the_place_where_consul_looks(
    action: Request,
) -> None:
    request = codec(token="s3cret", datacenter="d1", namespace="n1", partition="p1").encode(action)
    assert request.url is not None
    assert request.headers["X-Consul-Token"] == "s3cret"
    assert "s3cret" not in request.url and "s3cret" not in str(request.body)
    assert "dc=d1" in request.url
    if "/v1/txn" in request.url:
        assert request.url.endswith("/v1/txn?dc=d1"), "a transaction knows no other parameter"
        operations = json.loads(request.body or b"")
        placed = [each.get("KV") or each["Check"]["Check"] for each in operations]
        places = [(each["Namespace"], each["Partition"]) for each in placed]
        assert places and set(places) == {("n1", "p1")}
    else:
        assert "ns=n1" in request.url and "partition=p1" in request.url
    length = len(request.body or b"")
    assert request.headers.get("Content-Length", "0") == str(length)
    assert "Transfer-Encoding" not in request.headers


@pytest.mark.parametrize(
    ("given", "sent_as"), [("me:hunter2:x", "bWU6aHVudGVyMjp4"), ("me", "bWU6"), ("\udcff:é", "/zrDqQ==")]
)
def test_basic_authentication_is_sent_beside_the_token(given: str, sent_as: str) -> None:
    for action in EVERY_REQUEST:
        headers = codec(token="s3cret", http_auth=given).encode(action).headers
        assert headers["Authorization"] == f"Basic {sent_as}" and headers["X-Consul-Token"] == "s3cret"


def test_the_requests_of_check_go_to_the_configured_place() -> None:
    """With --connect the write that cannot succeed shows the rights that an acquire needs."""
    asked = codec(namespace="n1", partition="p1").transaction(impossible_write("key"))
    (operation,) = json.loads(asked.body or b"")
    assert (operation["KV"]["Namespace"], operation["KV"]["Partition"]) == ("n1", "p1")
    assert asked.url == "http://h/v1/txn"


def test_without_a_place_a_transaction_names_none() -> None:
    for action in EVERY_REQUEST + EVERY_OTHER_REQUEST:
        request = codec().encode(action)
        assert b"Namespace" not in (request.body or b"") and b"Partition" not in (request.body or b"")


def test_an_acquire_is_one_transaction_with_consuls_own_flags() -> None:
    body = codec().encode(EVERY_REQUEST[4]).body
    assert body is not None
    unchanged, operation = json.loads(body)
    assert unchanged["KV"] == {"Verb": "check-not-exists", "Key": "key"}
    assert operation["KV"]["Verb"] == "lock" and operation["KV"]["Flags"] == LOCK_FLAGS


def test_an_acquire_by_an_old_view_of_the_key_is_refused(asker: Asker) -> None:
    """The verb ``lock`` ignores the flags that another program has given the key meanwhile."""
    asker.agent.kv_put(asker.key, b"")
    entry = asker.agent.kv_get(asker.key)
    assert entry is not None
    asker.agent.kv_put(asker.key, b"", flags=42)
    for index in (entry["ModifyIndex"], 0):
        acquire = Acquire("e", 0.0, 1.0, asker.key, asker.session(), b"mine", index)
        assert asker.ask(acquire) == LostRace()


def test_a_prepared_acquire_gets_the_index_of_the_free_key(asker: Asker) -> None:
    prepared = Acquire("e", 0.0, 1.0, asker.key, asker.session(), b"mine", 7)
    kept = asker.consul.prepare(prepared)
    asker.agent.kv_put(asker.key, b"")
    entry = asker.agent.kv_get(asker.key)
    assert entry is not None
    sends = asker.consul.encode(replace(prepared, index=entry["ModifyIndex"], at=1.0))
    assert sends is kept and isinstance(asker.consul.decode(prepared, sent(sends)), Won)


def test_a_release_takes_whatever_a_key_can_hold(asker: Asker) -> None:
    """A transaction would not, because its limit counts the encoded body."""
    session, value = asker.session(), b"x" * 524_288
    asker.acquire(session)
    asker.agent.kv_put(asker.key, value)
    assert asker.release(session, value) == Done()
    entry = asker.agent.kv_get(asker.key)
    assert entry is not None and (entry["Session"], entry["Value"]) == ("", value)


def test_a_prepared_write_is_sent_as_it_is_unless_the_token_changed(tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text("one")
    consul = codec(token_file=str(file))
    acquire = EVERY_REQUEST[4]
    assert isinstance(acquire, Acquire)
    ready = consul.prepare(acquire)
    assert consul.encode(acquire) is ready
    consul.prepare(acquire)
    file.write_text("another")
    assert consul.encode(acquire).headers["X-Consul-Token"] == "another"


# --- responses without a meaning --------------------------------------------------------------

_ENTRY = {"Key": "key", "Value": None, "CreateIndex": 1, "ModifyIndex": 1, "LockIndex": 0, "Flags": 0}


@pytest.mark.parametrize("action", EVERY_REQUEST, ids=lambda action: type(action).__name__)
@pytest.mark.parametrize(
    ("status", "body"),
    [
        (200, b""),
        (200, b"<html>captive portal</html>"),
        (200, b"null"),
        (200, b"[null]"),
        (200, b'{"ID": 7}'),
        (200, b"[" * 100_000),
        (200, b'{"Results": [{"KV": null}]}'),
        (200, b'{"Results": [{"KV": {"Session": "another", "CreateIndex": 1}}]}'),
        (200, b"\xff\xfe\x00"),
        (301, b""),
        (404, b"<html>a proxy</html>"),
        (429, b""),
        (500, b"No cluster leader"),
        (500, b"rpc error making call: EOF"),
        (502, b""),
        (503, b"rate limit exceeded, try again later"),
    ],
)
def test_a_response_that_is_not_consuls_is_unknown(action: Request, status: int, body: bytes) -> None:
    """Nothing ends and nothing begins by such a response."""
    consul = codec()
    outcome = consul.decode(action, response(status, body))
    harmless = isinstance(outcome, Unknown) or outcome == SessionInfo(None)
    assert harmless, outcome
    if isinstance(outcome, Unknown):
        assert len(outcome.why) < 250


@pytest.mark.parametrize(
    ("changes", "index"),
    [
        ({"Key": "another"}, "7"),
        ({"Value": "no base64!"}, "7"),
        ({"ModifyIndex": "1"}, "7"),
        ({"LockIndex": -1}, "7"),
        ({"Session": 7}, "7"),
        ({"Flags": None}, "7"),
        ({}, ""),
        ({}, "-1"),
        ({}, "1e3"),
        ({}, "9" * 30),
    ],
)
def test_a_key_in_a_form_that_consul_does_not_use_is_unknown(changes: dict[str, object], index: str) -> None:
    consul = codec()
    body = json.dumps([{**_ENTRY, **changes}]).encode()
    outcome = consul.decode(EVERY_REQUEST[6], response(200, body, {"X-Consul-Index": index}))
    assert isinstance(outcome, Unknown), outcome
    good = json.dumps([_ENTRY]).encode()
    assert isinstance(consul.decode(EVERY_REQUEST[6], response(200, good, {"x-consul-index": "7"})), KeyView)


@pytest.mark.parametrize(
    ("flags", "foreign"), [(0, 0), (LOCK_FLAGS, 0), (SEMAPHORE_FLAGS, SEMAPHORE_FLAGS), (42, 42)]
)
def test_flags_that_are_neither_a_locks_nor_zero_are_another_programs(flags: int, foreign: int) -> None:
    consul = codec()
    body = json.dumps([{**_ENTRY, "Flags": flags}]).encode()
    view = consul.decode(EVERY_REQUEST[6], response(200, body, {"X-Consul-Index": "7"}))
    assert isinstance(view, KeyView) and view.foreign_flags == foreign


def test_a_value_is_decoded_as_base64(asker: Asker) -> None:
    body = json.dumps([{**_ENTRY, "Value": base64.b64encode(b"\x00x").decode()}]).encode()
    view = asker.consul.decode(EVERY_REQUEST[6], response(200, body, {"X-Consul-Index": "7"}))
    assert isinstance(view, KeyView) and view.value == b"\x00x"


def test_each_write_that_may_be_applied_late_has_a_connection_of_its_own() -> None:
    """Reads, renewals and requests about a service share connections; a service is read again afterwards."""
    kinds = {kind for kind in vars(req).values() if isinstance(kind, type) and issubclass(kind, Request)}
    asks = {kind for kind in kinds if kind.__name__.startswith(("Read", "Watch", "Hint"))}
    services = {kind for kind in kinds if issubclass(kind, req.ServiceRequest)}
    others = {Request, req.SlotRequest, RenewSession, *services}
    assert kinds - asks - others == set(get_args(req.Write))


@pytest.mark.parametrize("of_slot", [False, True])
def test_only_the_holder_rewrites_its_value(asker: Asker, of_slot: bool) -> None:
    """The rewrite leaves the lock, its LockIndex and its flags as they were."""
    agent, key = asker.agent, asker.key
    ours, other = agent.session_create(), agent.session_create()
    flags = SEMAPHORE_FLAGS if of_slot else LOCK_FLAGS
    lock = {"Verb": "lock", "Key": key, "Session": ours, "Flags": flags, "Value": "b2xk"}
    assert agent.txn([{"KV": lock}]).status == 200
    before = agent.kv_get(key)
    rewrite = req.Rewrite("n", 0.0, 1.0, key, ours, b"new", of_slot)
    assert asker.ask(rewrite) == Done()
    after = agent.kv_get(key)
    assert before is not None and after is not None and after["Value"] == b"new"
    same = ("Session", "LockIndex", "CreateIndex", "Flags")
    assert [after[name] for name in same] == [before[name] for name in same]
    assert asker.ask(replace(rewrite, session=other)) == LostRace()
    agent.release(key, ours, b"new")
    assert asker.ask(rewrite) == LostRace(), "applied late, it takes nothing anew"
    assert (agent.kv_get(key) or {})["Session"] == ""
    for session in (ours, other):
        agent.session_destroy(session)
    assert asker.ask(rewrite) == LostRace()
