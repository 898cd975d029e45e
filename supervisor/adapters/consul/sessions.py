"""Consul's HTTP API for sessions: how each request is sent, and what each answer means.

Error texts are those of Consul 1.8.7, as ``responses.error_text`` returns them.
"""

from functools import lru_cache
from typing import Any

import requests

from supervisor.adapters.consul.calls import REPEATED_MAX, Call, put
from supervisor.adapters.consul.responses import (
    MalformedResponse,
    error_text,
    failed,
    is_filtered,
    json_in,
    json_of,
    number,
    text,
    why,
)
from supervisor.adapters.consul.shown_session import compare_session, new_id
from supervisor.core.frozen import dataclass
from supervisor.core.outcomes import (
    Created,
    Done,
    Ineligible,
    ListedSession,
    Outcome,
    Refused,
    SessionGone,
    SessionInfo,
    SessionsView,
)
from supervisor.core.requests import CreateSession, DestroySession, ReadSession, RenewSession, Request
from supervisor.core.settings import SessionSettings

NAME_CHARS_MAX = 1024  # of a session's name, node and TTL, because any program may have written them
REPEATED_BYTES_MAX = 2048  # of the answer to a renewal that is kept; Consul's has some 400
NS_MAX = 2**63  # the largest duration of Go
NO_PATH = "No path to datacenter"
_CONFIGURATION_FAULTS = (  # agent/consul/session_endpoint.go, Apply, and agent/structs/errors.go of 1.8.7
    "Invalid Session TTL",
    "Session TTL",
    "Invalid Behavior",
    "Must provide Node",
    NO_PATH,
    "cross datacenter lock must be created at server agent",
)
_REGISTERS = "the agent registers its node and checks within a minute, and at once after `consul reload`"


@dataclass(frozen=True, slots=True)
class ReadSessions(Request):
    """``GET /v1/session/list``, which only commands send."""


def create(request: CreateSession) -> Call:
    """Encode the creation of a session.

    The request always names the checks, because Consul else adds serfHealth.
    """
    settings = request.settings
    return put(
        "session/create",
        {
            "Name": settings.name,
            "TTL": "" if settings.ttl_s is None else _go_duration(settings.ttl_s),
            "LockDelay": _go_duration(settings.lock_delay_s),
            "Behavior": settings.behavior,
            "NodeChecks": list(settings.node_checks),
            "ServiceChecks": [{"ID": check} for check in settings.service_checks],
        },
    )


def _go_duration(seconds: float) -> str:
    """Return the duration as text, because Consul reads a number as nanoseconds, or below 1000 as seconds."""
    return f"{round(seconds * 1000)}ms"


def created(request: CreateSession, response: requests.Response) -> Outcome:
    return Created(new_id(json_of(response, dict)))


def not_created(request: CreateSession, response: requests.Response) -> Outcome:
    """Return the outcome of a failed creation, by Consul's text.

    The texts of nodes and checks are those of agent/consul/state/session.go, validateSessionChecksTxn.
    """
    words = error_text(response)
    if words.startswith(_CONFIGURATION_FAULTS):
        return Refused(why(response))
    if words.startswith(("Missing node", "Missing check")):
        return Refused(f"{why(response)}: {_REGISTERS}", may_pass=True)
    if words.startswith("Check ") and "critical" in words:
        return Ineligible(why(response))
    return failed(response)


def renewed(request: RenewSession, response: requests.Response) -> Outcome:
    """Return whether the session that Consul has renewed has the settings of the request."""
    decoded = _renewed if len(response.content) <= REPEATED_BYTES_MAX else _renewed.__wrapped__
    return decoded(response.content, request.session, request.asked)


@lru_cache(REPEATED_MAX)
def _renewed(content: bytes, session: str, asked: SessionSettings) -> Outcome:
    """Decode equal answers once, because a session never changes, and its renewals have no other content."""
    sessions = json_in(content, list)
    if not sessions or text(sessions[0], "ID") != session:
        raise MalformedResponse("a renewal of another session")
    return compare_session(sessions[0], asked)


def not_renewed(request: RenewSession, response: requests.Response) -> Outcome:
    """Return SessionGone when Consul's text names our session, because any program may send a 404."""
    return SessionGone() if request.session in error_text(response) else failed(response)


def destroyed(request: DestroySession, response: requests.Response) -> Outcome:
    """Return Done for ``true``, which Consul also answers when the session does not exist."""
    if response.content.strip() != b"true":
        raise MalformedResponse("not true")
    return Done()


def informed(request: ReadSession, response: requests.Response) -> Outcome:
    """Return the session. An empty list: the session is gone, or the token may not read it."""
    for info in json_of(response, list):
        if text(info, "ID") == request.session:
            return SessionInfo(number(info, "LockDelay") / 1e9)
    return SessionInfo(None)


def listed(request: ReadSessions, response: requests.Response) -> Outcome:
    """Return all sessions of the answer. Consul leaves out those that the token may not read."""
    return SessionsView(tuple(map(_entry, json_of(response, list))), is_filtered(response))


def _entry(entry: Any) -> ListedSession:
    """Return one session of a list. An odd value of another program must not hide the other sessions."""
    delay_ns = entry.get("LockDelay") if isinstance(entry, dict) else 0
    return ListedSession(
        id=text(entry, "ID")[:NAME_CHARS_MAX],
        name=text(entry, "Name", "")[:NAME_CHARS_MAX],
        node=text(entry, "Node", "")[:NAME_CHARS_MAX],
        ttl=text(entry, "TTL", "")[:NAME_CHARS_MAX],
        lock_delay_s=min(max(0, delay_ns), NS_MAX) / 1e9 if isinstance(delay_ns, int | float) else 0.0,
        create_index=number(entry, "CreateIndex"),
    )
