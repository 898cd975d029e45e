"""Answers that Consul, or a proxy before it, may give to any request."""

import base64
import json
from dataclasses import dataclass, field

import requests

from supervisor.adapters.consul import fleet_requests, presence, semaphore, sessions
from supervisor.adapters.consul.codec import Codec
from supervisor.adapters.consul.endpoints import ENDPOINTS
from supervisor.adapters.consul.token import Token
from supervisor.config import ConsulSettings
from supervisor.config.formats import shot_notes, tenure_record
from supervisor.core import outcomes as o
from supervisor.core import requests as r
from supervisor.core.claim.notes import Note
from supervisor.core.claim.record import TenureRecord
from supervisor.core.requests import Request
from supervisor.core.settings import ServiceSettings, SessionSettings

ONE_HOP = "rpc error making call: "
HOPS = (ONE_HOP, 2 * ONE_HOP, "apply failed: ", "raft apply failed: ")
BOTH = "rpc error making call: rpc error: apply failed: "
_SETTINGS = ConsulSettings("http://h")
CONSUL = Codec(_SETTINGS, "http://h", Token(_SETTINGS))


@dataclass(frozen=True)
class Reply:
    """One answer."""

    status: int
    body: bytes = b""
    headers: dict[str, str] = field(default_factory=dict)

    @property
    def response(self) -> requests.Response:
        """Whole response, as the transport returns it."""
        made = requests.Response()
        made.status_code = self.status
        made._content = self.body
        made.headers.update(self.headers)
        made.request = requests.Request("GET", "http://h").prepare()
        return made

    def behind(self, hop: str) -> "Reply":
        """Return the same error as an agent forwards it that puts this text before it."""
        return Reply(self.status, hop.encode() + self.body, self.headers)


def refusal(what: str) -> Reply:
    """Return the refusal of a transaction."""
    return Reply(409, json.dumps({"Results": None, "Errors": [{"OpIndex": 0, "What": what}]}).encode())


LACKS = "Permission denied: token with AccessorID '00000000-0000-0000-0000-000000000002' lacks permission "
REPLIES: dict[str, Reply] = {
    "200 with nothing": Reply(200),
    "200 of a captive portal": Reply(200, b"<html>log in</html>"),
    "200 null": Reply(200, b"null"),
    "200 []": Reply(200, b"[]"),
    "200 {}": Reply(200, b"{}"),
    "200 true": Reply(200, b"true"),
    "200 false": Reply(200, b"false"),
    "200 of another session": Reply(200, b'[{"ID": "another", "LockDelay": 0}]'),
    "200 of another key": Reply(
        200, b'{"Results": [{"KV": {"Key": "another", "Session": "another", "CreateIndex": 1}}]}'
    ),
    "200 of an altered session": Reply(200, b'[{"ID": "s", "LockDelay": 1, "Behavior": "release"}]'),
    "301": Reply(301),
    "400": Reply(400, b"Request decode failed: json: cannot unmarshal number"),
    "400 of a key": Reply(400, b"Invalid key in transaction: a b"),
    "403 Permission denied": Reply(403, b"Permission denied"),
    "403 that names the permission": Reply(403, f"{LACKS}'key:write' on \"k\"".encode()),
    "403 ACL not found": Reply(403, b"ACL not found"),
    "403 by a client agent": Reply(403, b"rpc error making call: Permission denied"),
    "403 Access is restricted": Reply(403, b"Access is restricted"),
    "403 Endpoint is blocked": Reply(403, b"Endpoint is blocked by agent configuration"),
    "404 of a proxy": Reply(404, b"<html>not found</html>"),
    "404 with an index": Reply(404, b"", {"X-Consul-Index": "7"}),
    "404 of the session": Reply(404, b"Session id 's' not found"),
    "409 of a proxy": Reply(409, b"conflict"),
    "409 lock delay": refusal('failed to lock key "k" due to lock delay'),
    "409 lock held": refusal('failed to lock key "k", lock is already held'),
    "409 not held": refusal('failed to unlock key "k", lock isn\'t held, or is held by another session'),
    "409 invalid session": refusal('invalid session "s"'),
    "409 session check": refusal('failed session check for key "k", current session "" != "s"'),
    "409 another index": refusal('failed index check for key "k", current modify index 9 != 7'),
    "409 a tenure record": refusal('key "k/.tenure" exists'),
    "409 index is stale": refusal('failed to set key "p/.lock", index is stale'),
    "409 Permission denied": refusal("Permission denied"),
    "413": Reply(413, b"Request body(600000 bytes) too large, max size: 524288 bytes."),
    "429 with nothing": Reply(429),
    "429 rate limit": Reply(429, b"rate limit exceeded, try again later or against a different server"),
    "429 connections": Reply(429, b"Your IP is issuing too many concurrent connections"),
    "500 No cluster leader": Reply(500, b"No cluster leader"),
    "500 EOF": Reply(500, b"rpc error making call: EOF"),
    "500 Invalid Session TTL": Reply(500, b"Invalid Session TTL '3000000000', must be between [10s=24h0m0s]"),
    "500 Missing check": Reply(500, b"Missing check 'none' registration"),
    "500 Missing node": Reply(500, b"Missing node registration"),
    "500 critical check": Reply(500, b"Check 'chk' is in critical state"),
    "500 invalid session": Reply(500, b'invalid session "s"'),
    "500 rate limit": Reply(500, b"rpc error making call: rate limit exceeded, try again later"),
    "502": Reply(502, b"<html>bad gateway</html>"),
    "503 rate limit": Reply(
        503, b"rate limit exceeded for operation that can only be performed by the leader, try again later"
    ),
}
SILENCE: dict[str, o.Outcome] = {"no answer": o.Unknown("cannot reach 127.0.0.1:8500: timed out")}


def good(request: Request) -> dict[str, Reply]:
    """Return the answers of Consul to this request when all is well, by their names."""
    match request:
        case r.CreateSession():
            return {"it is made": _json({"ID": "11111111-2222-3333-4444-555555555555"})}
        case r.RenewSession(session=session):
            return {"it lives": _json([{"ID": session, "LockDelay": 30 * 10**9, **_AS_ASKED}])}
        case r.ReadSession(session=session):
            return {"it lives": _json([{"ID": session, "LockDelay": 15 * 10**9, "Name": "ours"}])}
        case sessions.ReadSessions():
            return {"they are": _json([{"ID": "s", "CreateIndex": 7, **_AS_ASKED}]), "none": _json([])}
        case r.ReadMaintenance():
            check = {"ServiceID": "", "Notes": "kernel"}
            return {"none": _json({}), "maintenance": _json({"_node_maintenance": check})}
        case r.ReadService():
            ours = _json({"Meta": {"managed-by": "consul-supervisor"}})
            absent = Reply(404, b"unknown service ID: i")
            return {"ours": ours, "another's": _json({"Meta": {}}), "absent": absent}
        case r.PassService():
            return {"done": Reply(200), "no check": Reply(500, b'Unknown check "service:i"')}
        case r.FindService():
            found = {each: [{"Check": {"Status": each}}] for each in ("passing", "critical")}
            results = {each: _json({"Results": result}) for each, result in {**found, "hidden": []}.items()}
            absent = refusal('check "service:i" on node "n" doesn\'t exist')
            return {**results, "absent": absent}
        case r.FailService():
            return {"done": Reply(200), "no check": Reply(404, b'Unknown check ID "service:i"')}
        case r.RegisterService() | r.DeregisterService():
            return {"done": Reply(200)}
        case fleet_requests.WriteHistory():
            return {"done": Reply(200, b"true"), "lost": Reply(200, b"false")}
        case r.DestroySession():
            return {"done": Reply(200, b"true")}
        case r.Release(value=b"") | r.LeaveSemaphore() | semaphore.WriteSlotRecord():
            return {"done": _written(getattr(request, "key", "k"), "")}
        case r.Release():
            return {"done": Reply(200, b"true"), "not held": Reply(200, b"false")}
        case r.Acquire(key=key, session=session) | r.Rewrite(key=key, session=session):
            return {"ours": _written(key, session)}
        case r.JoinSemaphore(prefix=prefix, session=session) | r.TakeSlot(prefix=prefix, session=session):
            entries = [_entry(f"{prefix}/{session}", session, 50), _entry(f"{prefix}/.lock", "", 61)]
            return {"seated": _json({"Results": [{"KV": entry} for entry in entries]})}
        case r.WriteNotes():
            return {"done": Reply(200, b"true"), "lost": Reply(200, b"false")}
        case r.ReadNotes(key=key):
            value = shot_notes.encoded((Note("m", "db1", "b", "db1", "db2", 0.0, 7),), 0.0)
            return {
                "notes": _shown([_entry(key, "", 9, value)]),
                "none": Reply(404, b"", {"X-Consul-Index": "7"}),
            }
        case r.WatchTenure(key=key):
            value = tenure_record.encoded(TenureRecord("s", target="db1"))
            shown = {"a record": value, "no record of ours": b"{}"}
            return {how: _shown([_entry(f"{key}/.tenure", "", 9, each)]) for how, each in shown.items()}
        case r.MarkTenure(key=key):
            return {"done": _written(f"{key}/.tenure", "")}
        case r.ReadKey(key=key) | r.WatchKey(key=key):
            whose = {"ours": "s", "a rival's": "rival", "free": ""}
            return {how: _shown([_entry(key, session, 9)]) for how, session in whose.items()}
        case r.ReadSlots(prefix=prefix) | r.WatchSlots(prefix=prefix):
            lists = {"ours": ["s"], "others'": ["o1", "o2", "o3"], "nobody's": []}
            return {how: _shown(_semaphore(prefix, holders)) for how, holders in lists.items()}
    raise AssertionError(request)


def _json(value: object) -> Reply:
    return Reply(200, json.dumps(value).encode())


def _shown(entries: list[dict[str, object]]) -> Reply:
    return Reply(200, json.dumps(entries).encode(), {"X-Consul-Index": "90"})


def _written(key: str, session: str) -> Reply:
    return _json({"Results": [{"KV": _entry(key, session, 7)}]})


def _entry(key: str, session: str, index: int, value: bytes = b"me", flags: int = 0) -> dict[str, object]:
    entry: dict[str, object] = {"Key": key, "Value": base64.b64encode(value).decode(), "Flags": flags}
    indexes = {"CreateIndex": min(3, index), "ModifyIndex": index, "LockIndex": 2}
    return {**entry, **indexes, **({"Session": session} if session else {})}


def _semaphore(prefix: str, holders: list[str]) -> list[dict[str, object]]:
    record = json.dumps({"Limit": 3, "Holders": dict.fromkeys(holders, True)}).encode()
    keys = [_entry(f"{prefix}/{session}", session, 50, b"{}") for session in holders]
    return [*keys, _entry(f"{prefix}/.lock", "", 80, record)]


def outcomes(request: Request) -> dict[str, o.Outcome]:
    """Return the outcome of each answer to this request, by the answer's name."""
    replies = {f"200 {name}": reply for name, reply in good(request).items()} | REPLIES
    decoded = {name: CONSUL.decode(request, reply.response) for name, reply in replies.items()}
    return SILENCE | decoded


_AS_ASKED = {"Name": "ours", "Behavior": "release", "NodeChecks": [], "TTL": "10s"}
_SERVICE = ServiceSettings("i", "leader", 5432)
_WHO, _ROSTER = ("n", 0.0, 1.0), r.SlotRecord(3, ("s",), 30.0)
REQUESTS: tuple[Request, ...] = (
    r.CreateSession(*_WHO, SessionSettings("ours")),
    r.RenewSession(*_WHO, "s", SessionSettings("ours")),
    r.ReadSession(*_WHO, "s"),
    sessions.ReadSessions(*_WHO),
    r.ReadMaintenance(*_WHO),
    r.ReadService(*_WHO, _SERVICE),
    r.RegisterService(*_WHO, _SERVICE, 3.0),
    r.PassService(*_WHO, _SERVICE),
    r.DeregisterService(*_WHO, _SERVICE),
    r.FailService(*_WHO, _SERVICE),
    r.FindService(*_WHO, _SERVICE),
    presence.RegisterPresence(*_WHO, _SERVICE, 3.0),
    presence.TellPresence(*_WHO, _SERVICE),
    r.DestroySession(*_WHO, "s"),
    r.Acquire(*_WHO, "k", "s", b"me"),
    r.Rewrite(*_WHO, "k", "s", b"new"),
    r.Release(*_WHO, "k", "s", b"me"),
    r.Release(*_WHO, "k", "s", b""),
    r.WatchTenure(*_WHO, "k", 5, 30.0),
    r.MarkTenure(*_WHO, "k", TenureRecord("s"), 5),
    r.ReadKey(*_WHO, "k"),
    r.WatchKey(*_WHO, "k", 5, 30.0, True),
    r.HintKey(*_WHO, "k", 5, 55.0, False),
    r.JoinSemaphore(*_WHO, "p", "s", b"me", _ROSTER, 0),
    r.TakeSlot(*_WHO, "p", "s", _ROSTER, 60),
    r.LeaveSemaphore(*_WHO, "p", "s"),
    semaphore.WriteSlotRecord(*_WHO, "p", _ROSTER, 60),
    fleet_requests.ReadHistory(*_WHO, "p/history/n", "p"),
    fleet_requests.WriteHistory(*_WHO, "p/history/n", "p", b"{}", 5),
    fleet_requests.ReadOrder(*_WHO, "p/orders/pause/n", "p"),
    fleet_requests.WriteOrder(*_WHO, "p/orders/pause/n", "p", b"{}", 5),
    r.ReadNotes(*_WHO, "p/shots"),
    r.WriteNotes(*_WHO, "p/shots", (), 5),
    r.ReadSlots(*_WHO, "p"),
    r.WatchSlots(*_WHO, "p", 5, 30.0, True),
)
assert {type(request) for request in REQUESTS} == {*ENDPOINTS}
