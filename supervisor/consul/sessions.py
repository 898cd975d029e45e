"""Consul's HTTP API for sessions: how each request is sent, and what each answer means.

The texts of errors are those of Consul 1.8.7, without what agents put before them (``answers.said``).
Nothing here decides anything. A function that reads an answer raises MalformedResponse where the answer is
none of Consul's.
"""

import requests

from supervisor.consul.calls import Call, put
from supervisor.consul.responses import MalformedResponse, failed, json_of, number, said, text, why
from supervisor.consul.shown_session import as_asked, new_id
from supervisor.core.outcomes import Created, Done, Ineligible, Outcome, Refused, SessionGone, SessionInfo
from supervisor.core.requests import CreateSession, DestroySession, ReadSession, RenewSession

NO_PATH = "No path to datacenter"
_CONFIGURATION_FAULTS = (
    "Invalid Session TTL",
    "Session TTL",
    "Invalid Behavior",
    "Missing check",
    "Missing node",
    "Must provide Node",
    NO_PATH,
    "cross datacenter lock must be created at server agent",
)


def create(request: CreateSession) -> Call:
    """Ask for a session. The checks are always sent, because Consul adds serfHealth where they are absent."""
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
    """Return text, because Consul takes a number below 1000 for seconds and one above for nanoseconds."""
    return f"{round(seconds * 1000)}ms"


def created(request: CreateSession, response: requests.Response) -> Outcome:
    """Return the ID of the session that Consul has made."""
    return Created(new_id(json_of(response, dict)))


def refused(request: CreateSession, response: requests.Response) -> Outcome:
    """Return Refused, because Consul cannot decode what the configuration asks for."""
    return Refused(why(response))


def not_created(request: CreateSession, response: requests.Response) -> Outcome:
    """Return what Consul's words mean, where it made no session."""
    words = said(response)
    if words.startswith(_CONFIGURATION_FAULTS):
        return Refused(why(response))
    if words.startswith("Check ") and "critical" in words:
        return Ineligible(why(response))
    return failed(response)


def renewed(request: RenewSession, response: requests.Response) -> Outcome:
    """Return whether the session that Consul has renewed is the one that was asked for."""
    sessions = json_of(response, list)
    if not sessions or text(sessions[0], "ID") != request.session:
        raise MalformedResponse("a renewal of another session")
    return as_asked(sessions[0], request.asked)


def not_renewed(request: RenewSession, response: requests.Response) -> Outcome:
    """Return SessionGone where Consul names our session; a 404 without the name is another program's."""
    return SessionGone() if request.session in said(response) else failed(response)


def destroyed(request: DestroySession, response: requests.Response) -> Outcome:
    """Return Done for ``true``, which Consul says also of a session that does not exist."""
    if response.content.strip() != b"true":
        raise MalformedResponse("not true")
    return Done()


def informed(request: ReadSession, response: requests.Response) -> Outcome:
    """Return the session; an empty list means that it is gone or that the token may not read it."""
    for info in json_of(response, list):
        if text(info, "ID") == request.session:
            return SessionInfo(number(info, "LockDelay") / 1e9)
    return SessionInfo(None)
