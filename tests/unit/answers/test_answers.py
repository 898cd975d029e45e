"""Every answer of Consul to every request has a defined outcome, and the core goes on after each of them."""

import json

import pytest

from supervisor.adapters.consul import fleet_requests, presence, semaphore, sessions
from supervisor.adapters.consul.endpoints import ENDPOINTS, endpoint_of
from supervisor.core import events as e
from supervisor.core import outcomes as o
from supervisor.core import requests as r
from supervisor.reporting.telemetry.facts import FAILURES, Facts
from supervisor.reporting.telemetry.history import History
from supervisor.reporting.telemetry.metrics.counters import Counters
from supervisor.reporting.telemetry.names import SENTENCES
from tests.support.log_written import Written
from tests.unit.answers.__main__ import name_of
from tests.unit.answers.replies import BOTH, CONSUL, HOPS, REPLIES, REQUESTS, Reply, good, outcomes

SAYS_NOTHING = (o.Unknown, o.Denied, o.Refused, o.Ineligible)
BY_CONSUL = [name for name, reply in REPLIES.items() if reply.status == 500]


def test_every_class_of_request_has_a_row() -> None:
    modules = (r, fleet_requests, presence, semaphore, sessions)
    known = [kind for module in modules for kind in vars(module).values()]
    kinds = {kind for kind in known if isinstance(kind, type) and issubclass(kind, r.Request)}
    assert kinds - {r.Request, r.SlotRequest, r.ServiceRequest} == {*ENDPOINTS}
    assert {row.line for row in ENDPOINTS.values()} <= {*SENTENCES}


@pytest.mark.parametrize("request_", REQUESTS, ids=name_of)
def test_every_answer_has_an_outcome(request_: r.Request) -> None:
    """Log, status and metrics must have words for each outcome."""
    written, counters = Written(), Counters(lambda: 0.0, lambda name: None)
    history = History(lambda: 0.0, lambda: 0.0)
    facts = Facts(lambda: 0.0, written.log.on_step, counters.on_step, history.on_step)
    for name, outcome in outcomes(request_).items():
        assert isinstance(outcome, o.Outcome), name
        facts.on_step(e.Answered(request_, outcome), (request_,))
        if isinstance(outcome, SAYS_NOTHING):
            last = history.of("n").last_error
            assert last is not None and last.text == FAILURES[type(outcome)].text + outcome.why
            assert outcome.why.strip(), name


@pytest.mark.parametrize("request_", REQUESTS, ids=name_of)
def test_a_good_answer_is_never_taken_for_trouble(request_: r.Request) -> None:
    for name, reply in good(request_).items():
        assert not isinstance(CONSUL.decode(request_, reply.response), SAYS_NOTHING), name


@pytest.mark.parametrize("request_", REQUESTS, ids=name_of)
def test_a_text_that_agents_put_before_an_error_changes_no_outcome(request_: r.Request) -> None:
    for name in BY_CONSUL:
        plain = type(CONSUL.decode(request_, REPLIES[name].response))
        for hop in (*HOPS, BOTH):
            behind = CONSUL.decode(request_, REPLIES[name].behind(hop).response)
            assert type(behind) is plain, (name, hop)


def test_each_kind_of_trouble_has_an_outcome_of_its_own() -> None:
    create, renewal = outcomes(REQUESTS[0]), outcomes(REQUESTS[1])
    for answer in ("429 with nothing", "429 rate limit", "500 rate limit", "503 rate limit"):
        assert isinstance(create[answer], o.Throttled) and isinstance(renewal[answer], o.Throttled)
    for answer in ("500 Invalid Session TTL", "500 Missing check", "500 Missing node", "400"):
        assert isinstance(create[answer], o.Refused) and isinstance(renewal[answer], o.Failed)
    assert isinstance(create["500 critical check"], o.Ineligible)
    assert isinstance(create["429 connections"], o.Failed)
    assert "http_max_conns_per_client" in create["429 connections"].why
    assert type(create["no answer"]) is o.Unknown
    assert isinstance(renewal["200 of an altered session"], o.SessionAltered)
    passing = {name: each.may_pass for name, each in create.items() if isinstance(each, o.Refused)}
    assert (
        passing["500 Missing node"]
        and passing["500 Missing check"]
        and not passing["500 Invalid Session TTL"]
    )


def test_a_transaction_that_consul_does_not_take_is_refused_in_its_words() -> None:
    for request in REQUESTS:
        call = endpoint_of(request).encode(request)
        if call.operations and not isinstance(request, r.FindService):  # one that only reads
            assert outcomes(request)["400 of a key"] == o.Refused("400 Invalid key in transaction: a b")


@pytest.mark.parametrize("request_", REQUESTS, ids=name_of)
def test_only_a_write_or_renewal_can_be_dropped_because_agents_repeat_reads(request_: r.Request) -> None:
    writes = endpoint_of(request_).operation in ("write", "renew")
    assert (type(outcomes(request_)["500 EOF"]) is o.Dropped) is writes


def test_a_denied_request_names_its_remedy() -> None:
    rewrite = outcomes(r.Rewrite("n", 0.0, 1.0, "k", "s", b"new"))
    why = {name: outcome.why for name, outcome in rewrite.items() if isinstance(outcome, o.Denied)}
    rule = 'the anonymous token, because none is set, needs key "k" { policy = "write" }'
    assert why["403 Permission denied"] == f"403 Permission denied: {rule}"
    assert why["403 by a client agent"].endswith(rule)
    assert why["409 Permission denied"] == f"409 Permission denied: {rule}"
    assert why["403 that names the permission"].endswith("lacks permission 'key:write' on \"k\"")
    assert "it was deleted or mistyped" in why["403 ACL not found"]
    assert "http_config.allow_write_http_from" in why["403 Access is restricted"]
    assert "http_config.block_endpoints" in why["403 Endpoint is blocked"]
    slot = r.Rewrite("n", 0.0, 1.0, "p/s", "s", b"new", of_slot=True)
    assert 'key_prefix "p/" { policy = "write" }' in outcomes(slot)["403 Permission denied"].why  # type: ignore[union-attr]


def test_a_list_of_sessions_is_shown_whatever_other_programs_have_put_there() -> None:
    """One odd session must not hide the others; an answer that no Consul gives is none."""
    odd = [
        {"ID": "a", "Name": "x" * 10_000, "Node": "\x1b[2J", "TTL": "1m", "LockDelay": -5, "CreateIndex": 1},
        {"ID": "b", "LockDelay": 10**400, "CreateIndex": 2},
        {"ID": "c", "LockDelay": "15s", "CreateIndex": 3},
    ]
    request = sessions.ReadSessions("", 0.0, 1.0)
    view = CONSUL.decode(request, Reply(200, json.dumps(odd).encode()).response)
    assert isinstance(view, o.SessionsView) and [each.id for each in view.sessions] == ["a", "b", "c"]
    assert len(view.sessions[0].name) == 1024 and view.sessions[0].lock_delay_s == 0 and not view.filtered
    hidden = Reply(200, b"[]", {"X-Consul-Results-Filtered-By-ACLs": "true"})
    assert CONSUL.decode(request, hidden.response) == o.SessionsView((), filtered=True)
    for body in (b"[1]", b"[{}]", b'[{"ID": "a"}]', b'[{"ID": 7, "CreateIndex": 1}]', b"{}"):
        assert isinstance(CONSUL.decode(request, Reply(200, body).response), o.Failed), body


def test_the_maintenance_mode_has_a_reason_of_one_bounded_line() -> None:
    """Checks that the token may not read hide the mode; an answer that no Consul gives is none."""

    def outcome(body: object, headers: dict[str, str] | None = None) -> o.Outcome:
        reply = Reply(200, json.dumps(body).encode(), headers or {})
        return CONSUL.decode(r.ReadMaintenance("", 0.0, 1.0), reply.response)

    hidden = {"X-Consul-Results-Filtered-By-ACLs": "true"}
    mode = {"_node_maintenance": {"Notes": "a\n\tb " + "x" * 10_000}}
    shown = outcome(mode, hidden)
    assert isinstance(shown, o.InMaintenance) and shown == outcome(mode)
    assert "mode: a b xx" in shown.why and "\n" not in shown.why and len(shown.why) < 300
    assert "no reason is given" in outcome({"_node_maintenance": {}}).why  # type: ignore[union-attr]
    assert outcome({}) == outcome({"web": {}}) == o.InMaintenance()
    denied = outcome({}, hidden)
    assert isinstance(denied, o.Denied) and 'node "NAME-OF-THE-AGENTS-NODE" { policy = "read" }' in denied.why
    for odd in (7, {"Notes": 7}):
        assert isinstance(outcome({"_node_maintenance": odd}), o.Failed)
    assert isinstance(outcome([]), o.Failed)
