"""Consul's HTTP API: an action as a request, a response as an outcome.

It knows paths, bodies and error texts (taken from Consul 1.8.7 and checked against it by the
tests); it never opens a socket and never decides what an outcome means for a tenure. Whatever it
does not recognise is ``Unknown``: a proxy's 404 or a captive portal's 200 must not end or begin
anything.
"""

import base64
import json
from urllib.parse import quote, urlencode

import requests

from supervisor import consul_slots as slots
from supervisor import rights
from supervisor.answers import Unreadable, head_of, index_of, json_of, number, text, why
from supervisor.config import ConsulSettings
from supervisor.core.actions import (
    Acquire,
    CreateSession,
    DestroySession,
    Enroll,
    Leave,
    ReadKey,
    ReadSession,
    ReadSlots,
    Release,
    RenewSession,
    Request,
    Rewrite,
    SetRoster,
    TakeSlot,
    Watch,
    WatchKey,
    WatchSlots,
)
from supervisor.core.events import (
    Alive,
    Created,
    Dead,
    Denied,
    Done,
    Ineligible,
    KeyView,
    LockDelayed,
    Outcome,
    Raced,
    Refused,
    SessionInfo,
    Unknown,
    Won,
)
from supervisor.core.settings import SessionSettings
from supervisor.sharing import LOCK_FLAGS, Listing, Question, listed, view_of
from supervisor.token import Token

_CONFIGURATION_FAULTS = (
    "Invalid Session TTL",
    "Session TTL",
    "Invalid Behavior",
    "Missing check",
    "Missing node",
    "Must provide Node",
)


_Signature = tuple[type[Request], str, str, bytes, str | None]  # what the bytes of a write depend on


class Consul:
    """Encodes and decodes for one Consul agent. ``base_url`` is ``http(s)://HOST:PORT``."""

    def __init__(self, settings: ConsulSettings, base_url: str, token: Token) -> None:
        self._base_url = base_url
        self._token = token
        scope = {"dc": settings.datacenter, "ns": settings.namespace, "partition": settings.partition}
        self._scope = {name: value for name, value in scope.items() if value is not None}
        self._template = requests.Request("GET", base_url).prepare()
        self._ahead: dict[str, tuple[_Signature, requests.PreparedRequest]] = {}
        self._readers: dict[str, slots.Reader] = {}  # one a semaphore of the file

    def prepare(self, action: Acquire | Release) -> requests.PreparedRequest:
        """Encode ahead: ``encode`` gives this same request for the same write, one an item."""
        request = self._encode(action)
        self._ahead[action.item] = (self._signature(action), request)
        return request

    def encode(self, action: Request) -> requests.PreparedRequest:
        """The request for this action, with the token of this moment."""
        if isinstance(action, Acquire | Release) and action.item in self._ahead:
            signature, request = self._ahead.pop(action.item)
            if signature == self._signature(action):
                return request
        return self._encode(action)

    def question(self, path: str, body: object | None = None) -> requests.PreparedRequest:
        """What is no action of the core: a GET, or with a body a PUT; whoever asks reads the answer."""
        return self._request("GET", path) if body is None else self._put(path, body)

    def list_question(self, asked: Question) -> requests.PreparedRequest:
        """For all keys below a prefix."""
        waits = {"index": str(asked.index), "wait": f"{asked.wait_s:g}s"} if asked.index is not None else {}
        query = {"recurse": "", **waits, **({"consistent": ""} if asked.consistent else {})}
        return self._request("GET", f"kv/{quote(asked.prefix)}", query)

    def list_answer(self, asked: Question, response: requests.Response) -> Listing | Unknown | Denied | None:
        """None: Consul refuses this list, and may yet tell of single keys."""
        if response.status_code == 403:
            said = why(response)
            known = rights.UNKNOWN_TOKEN not in said
            return None if known else Denied(f"{said}: {rights.unknown(self._token.called)}", said)
        try:
            if response.status_code in (200, 404):
                return listed(response, asked.prefix)
        except Unreadable as error:
            return Unknown(f"not an answer of Consul: {error}")
        return Unknown(why(response))

    def _signature(self, action: Acquire | Release) -> "_Signature":
        return type(action), action.key, action.session, action.value, self._token.value()

    def _encode(self, action: Request) -> requests.PreparedRequest:
        match action:
            case CreateSession(settings=settings):
                return self._put("session/create", _session_body(settings))
            case RenewSession(session=session):
                return self._put(f"session/renew/{session}")
            case DestroySession(session=session):
                return self._put(f"session/destroy/{session}")
            case ReadSession(session=session):
                return self._request("GET", f"session/info/{session}")
            case Acquire(key=key, session=session, value=value):
                return self._put("txn", _lock_operation(key, session, value))
            case Rewrite():
                return self._put("txn", _rewrite_operations(action))
            case Release(key=key, session=session, value=value):
                return self._release(key, session, value)
            case ReadKey(key=key):
                return self._request("GET", f"kv/{quote(key)}", {"consistent": ""})
            case WatchKey(key=key):
                return self._request("GET", f"kv/{quote(key)}", _waiting(action))
            case ReadSlots(prefix=prefix):
                return self._request("GET", slots.path_of(prefix), {"recurse": "", "consistent": ""})
            case WatchSlots(prefix=prefix):
                return self._request("GET", slots.path_of(prefix), {"recurse": "", **_waiting(action)})
            case Enroll() | TakeSlot() | Leave() | SetRoster():
                return self._put("txn", slots.operations(action))
        raise AssertionError(f"no such request: {action}")

    def decode(self, action: Request, response: requests.Response) -> Outcome:
        """What this answer says; never raises for anything that a peer can send."""
        outcome = self._decode(action, response)
        if isinstance(outcome, Denied):
            said = outcome.why
            return Denied(f"{said}: {rights.remedy(self._token.called, action, said)}", said)
        return outcome

    def _decode(self, action: Request, response: requests.Response) -> Outcome:
        status = response.status_code
        if status == 403:
            return Denied(why(response))
        try:
            match action:
                case CreateSession():
                    return _created(response)
                case RenewSession(session=session):
                    return _renewed(response, session)
                case DestroySession() if status == 200 and response.content.strip() == b"true":
                    return Done()
                case ReadSession(session=session) if status == 200:
                    return _session_info(response, session)
                case Acquire(session=session) if status == 200:
                    return _won(response, session)
                case Rewrite() if status == 200:
                    return Done()
                case Rewrite() if status == 409:
                    return _refused_rewrite(response)
                case Release() if status == 200:
                    return _released(response)
                case Release() if status in (400, 413):
                    return Refused(why(response))
                case Acquire() | Release() if status in (409, 500):
                    return _refused_lock(response)
                case ReadKey(key=key) | WatchKey(key=key) if status in (200, 404):
                    return _key_view(response, key)
                case ReadSlots(prefix=prefix) | WatchSlots(prefix=prefix) if status in (200, 404):
                    reader = self._readers.setdefault(prefix, slots.Reader(prefix))
                    return reader.view(index_of(response), response)
                case Enroll() | TakeSlot() if status == 200:
                    return slots.seated(action, response)
                case Leave() | SetRoster() if status == 200:
                    return Done()
                case Enroll() | TakeSlot() | Leave() | SetRoster() if status == 409:
                    return _refused_step(response)
        except Unreadable as error:
            return Unknown(f"not an answer of Consul: {error}")
        return Unknown(why(response))

    def _put(self, path: str, body: object | None = None) -> requests.PreparedRequest:
        data = b"" if body is None else json.dumps(body, separators=(",", ":")).encode()
        return _with_body(self._request("PUT", path), data, "application/json")

    def _release(self, key: str, session: str, value: bytes) -> requests.PreparedRequest:
        """No transaction: its limit holds for the encoded value, and a key may hold more than that."""
        query = {"release": session, "flags": str(LOCK_FLAGS)}
        return _with_body(self._request("PUT", f"kv/{quote(key)}", query), value, "application/octet-stream")

    def _request(
        self, method: str, path: str, query: dict[str, str] | None = None
    ) -> requests.PreparedRequest:
        request = self._template.copy()
        parameters = urlencode({**self._scope, **(query or {})})
        request.method = method
        request.url = f"{self._base_url}/v1/{path}" + (f"?{parameters}" if parameters else "")
        token = self._token.value()
        if token is not None:
            request.headers["X-Consul-Token"] = token
        return request


def _waiting(action: Watch) -> dict[str, str]:
    query = {"index": str(action.index), "wait": f"{action.wait_s:g}s"}
    return {**query, "consistent": ""} if action.consistent else query


def _with_body(request: requests.PreparedRequest, data: bytes, content_type: str) -> requests.PreparedRequest:
    request.body = data
    # A body without Content-Length is ignored by Consul: it would make a session without TTL.
    request.headers["Content-Length"] = str(len(data))
    request.headers["Content-Type"] = content_type
    return request


def _session_body(settings: SessionSettings) -> dict[str, object]:
    """The checks are always sent, for Consul adds serfHealth where they are absent."""
    return {
        "Name": settings.name,
        "TTL": "" if settings.ttl_s is None else _go_duration(settings.ttl_s),
        "LockDelay": _go_duration(settings.lock_delay_s),
        "Behavior": settings.behavior,
        "NodeChecks": list(settings.node_checks),
        "ServiceChecks": [{"ID": check} for check in settings.service_checks],
    }


def _go_duration(seconds: float) -> str:
    """As text, for Consul takes a number below 1000 for seconds and one above for nanoseconds."""
    return f"{round(seconds * 1000)}ms"


def _lock_operation(key: str, session: str, value: bytes, flags: int = LOCK_FLAGS) -> list[dict[str, object]]:
    operation = {
        "Verb": "lock",
        "Key": key,
        "Value": base64.b64encode(value).decode(),
        "Flags": flags,
        "Session": session,
    }
    return [{"KV": operation}]


def _rewrite_operations(action: Rewrite) -> list[dict[str, object]]:
    """The lock alone would take the key anew when it has been released meanwhile; and a plain write
    would set its LockIndex to 0."""
    flags = slots.SEMAPHORE_FLAGS if action.of_slot else LOCK_FLAGS
    check = {"Verb": "check-session", "Key": action.key, "Session": action.session}
    return [{"KV": check}, *_lock_operation(action.key, action.session, action.value, flags)]


def _created(response: requests.Response) -> Outcome:
    reason = why(response)
    if response.status_code == 200:
        return Created(text(json_of(response, dict), "ID"))
    if response.status_code == 400 or head_of(response).startswith(_CONFIGURATION_FAULTS):
        return Refused(reason)
    if head_of(response).startswith("Check ") and "critical" in reason:
        return Ineligible(reason)
    return Unknown(reason)


def _renewed(response: requests.Response, session: str) -> Outcome:
    if response.status_code == 404 and session in head_of(response):
        return Dead()
    if response.status_code == 200:
        renewed = json_of(response, list)
        if not renewed or text(renewed[0], "ID") != session:
            raise Unreadable("a renewal of another session")
        return Alive()
    return Unknown(why(response))


def _session_info(response: requests.Response, session: str) -> Outcome:
    for info in json_of(response, list):
        if text(info, "ID") == session:
            return SessionInfo(number(info, "LockDelay") / 1e9, text(info, "Name"))
    return SessionInfo(None)


def _won(response: requests.Response, session: str) -> Outcome:
    results = json_of(response, dict).get("Results")
    if not isinstance(results, list) or len(results) != 1 or not isinstance(results[0], dict):
        raise Unreadable("a transaction without its result")
    entry = results[0].get("KV")
    if text(entry, "Session") != session:
        raise Unreadable("a lock of another session")
    return Won(number(entry, "CreateIndex"), number(entry, "ModifyIndex"), number(entry, "LockIndex"))


def _released(response: requests.Response) -> Outcome:
    """``false``: it was not held by this session (any more)."""
    if response.content.strip() not in (b"true", b"false"):
        raise Unreadable("neither true nor false")
    return Done()


def _refused_lock(response: requests.Response) -> Outcome:
    said = head_of(response)
    if "due to lock delay" in said:
        return LockDelayed()
    if "lock is already held" in said:
        return Raced()
    if "invalid session" in said:
        return Dead()
    if "Permission denied" in said:
        return Denied(why(response))
    return Unknown(why(response))


def _refused_rewrite(response: requests.Response) -> Outcome:
    return Raced() if "failed session check" in head_of(response) else _refused_lock(response)


def _key_view(response: requests.Response, key: str) -> Outcome:
    index = index_of(response)
    if response.status_code == 404:
        return KeyView(index)
    entries = json_of(response, list)
    if len(entries) != 1 or text(entries[0], "Key") != key:
        raise Unreadable("another key than was asked for")
    return view_of(entries[0], index)


def _refused_step(response: requests.Response) -> Outcome:
    """A check-and-set was lost, our contender key is not ours any more, or our session is gone."""
    said = head_of(response)
    if "invalid session" in said:
        return Dead()
    if "Permission denied" in said:
        return Denied(why(response))
    return Raced()
