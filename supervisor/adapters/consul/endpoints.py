"""A table of Consul's API with one row for each class of request.

A row has the encoding of the request, the meaning of each status of an answer, the rule of a policy that the
request needs, and the names of the request in metrics and log. A new class of request is one new row. A test
walks all rows with all answers.
"""

from collections.abc import Callable, Mapping
from typing import Any, Literal

import requests

from supervisor.adapters.consul import fleet_requests, keys, maintenance, presence, services, sessions
from supervisor.adapters.consul import semaphore as slots
from supervisor.adapters.consul.calls import Call, get, put
from supervisor.adapters.consul.fleet_requests import ReadHistory, ReadOrder, WriteHistory, WriteOrder
from supervisor.adapters.consul.presence import RegisterPresence, TellPresence
from supervisor.adapters.consul.responses import MalformedResponse, error_text, failed, unreadable, why
from supervisor.core import requests as to
from supervisor.core.claim.record import TENURE_SUFFIX
from supervisor.core.frozen import dataclass
from supervisor.core.outcomes import Denied, Dropped, Failed, Outcome
from supervisor.core.settings import LOCK_SUFFIX

Operation = Literal["read", "renew", "write", "watch"]
Encode = Callable[[Any], Call]
Decode = Callable[[Any, requests.Response], Outcome]
Rule = Callable[[Any], str]
NODE = "NAME-OF-THE-AGENTS-NODE"
DROPPED = ("EOF", "session shutdown")  # a connection between two agents was closed after it had rested
READS_SESSIONS = 'session_prefix "" { policy = "read" }'


@dataclass(frozen=True, slots=True)
class ApiEndpoint:
    """One row of the table."""

    operation: Operation  # the operation as which metrics count the request
    encode: Encode  # returns the HTTP call of a request
    decode: Mapping[int, Decode]  # by status; an answer of any other status is a failure
    rule: Rule  # returns the rule of a policy that a request needs
    line: Literal["request", "releasing", "destroying"] = "request"  # the log event when the request is sent
    # Requests whose recurring failure ends when this request succeeds, because a watch that works may have no
    # answer for half a minute.
    shows: tuple[type[to.Request], ...] = ()


def endpoint_of(request: to.Request) -> ApiEndpoint:
    return ENDPOINTS[type(request)]


def outcome_of(request: to.Request, response: requests.Response) -> Outcome:
    """Return the outcome of this answer, with Consul's text alone. Never raises, whatever a peer sends."""
    if response.status_code == 403:  # a transaction may say so with 409: see ``keys.not_locked``
        return Denied(why(response))
    endpoint = endpoint_of(request)
    decode = endpoint.decode.get(response.status_code)
    try:
        outcome = failed(response) if decode is None else decode(request, response)
    except MalformedResponse as error:
        return unreadable(error)
    is_lost = endpoint.operation in ("write", "renew") and error_text(response) in DROPPED
    return Dropped(outcome.why) if is_lost and type(outcome) is Failed else outcome


# --- rules ---------------------------------------------------------------------------------------


def _rule(resource: str, name: str, policy: str) -> str:
    return f'{resource} "{name}" {{ policy = "{policy}" }}'


def _session(policy: str) -> Callable[[to.Request], str]:
    return lambda request: _rule("session", NODE, policy)


def _writes_service(request: to.ServiceRequest) -> str:
    return _rule("service", request.service.name, "write")


def _writes_key(request: to.Acquire | to.Release) -> str:
    rule = _rule("key", request.key, "write")
    with_record = request.ends_record if isinstance(request, to.Release) else request.record is not None
    return f"{rule} {_writes_tenure(request)}" if with_record else rule


def _writes_tenure(request: to.Acquire | to.Release | to.Rewrite | to.WatchTenure | to.MarkTenure) -> str:
    return _rule("key", request.key + TENURE_SUFFIX, "write")


def _rewrites(request: to.Rewrite) -> str:
    prefix, _, _ = request.key.rpartition("/")
    rule = _rule(*(("key_prefix", f"{prefix}/") if request.of_slot else ("key", request.key)), "write")
    with_record = request.record is not None or request.ends_record
    return f"{rule} {_writes_tenure(request)}" if with_record else rule


def _reads_key(request: to.ReadKey | to.WatchKey) -> str:
    if isinstance(request, to.ReadKey) and request.prefix:
        return _reads_prefix(request)
    return f'{_rule("key", request.key, "read")} ("write" to contend)'


def _reads_prefix(request: to.ReadKey | to.ReadSlots | to.WatchSlots) -> str:
    return f'{_rule("key_prefix", f"{request.prefix}/", "list")} ("write" to contend)'


def _writes_prefix(request: to.JoinSemaphore | to.TakeSlot | to.LeaveSemaphore) -> str:
    return _rule("key_prefix", f"{request.prefix}/", "write")


def _writes_history(request: ReadHistory | WriteHistory) -> str:
    return _rule("key_prefix", fleet_requests.history_key(request.prefix, ""), "write")


def _writes_notes(request: to.ReadNotes | to.WriteNotes) -> str:
    return _rule("key", request.key, "write")


def _orders(policy: str) -> Callable[[ReadOrder | WriteOrder], str]:
    return lambda request: _rule("key_prefix", fleet_requests.orders_folder(request.prefix), policy)


# --- the table -----------------------------------------------------------------------------------

_LOCK = {200: keys.won, 400: keys.refused, 409: keys.not_locked, 500: keys.not_locked}
_VALUE = {200: keys.rewritten, 400: keys.refused, 409: keys.not_written}
_SLOT = {200: slots.slot_written, 400: keys.refused, 409: slots.not_written}
_RECORD = {200: slots.written, 400: keys.refused, 409: slots.not_written}
_KEY = {200: keys.shown, 404: keys.absent}
_SLOTS = {200: slots.shown, 404: slots.shown}
_FOUND = dict.fromkeys((200, 400, 409), services.found)
_OF_FLEET = {200: fleet_requests.written, 400: keys.refused, 413: keys.refused}


def _service(
    method: Callable[[str], Call], path: str, good: Decode
) -> tuple[Encode, Mapping[int, Decode], Rule]:
    decode = {200: good, 404: services.unknown, 500: services.unknown}
    return services.encode(method, path), decode, _writes_service


ENDPOINTS: Mapping[type[to.Request], ApiEndpoint] = {
    to.CreateSession: ApiEndpoint(
        "write",
        sessions.create,
        {200: sessions.created, 400: keys.refused, 500: sessions.not_created},
        _session("write"),
    ),
    to.RenewSession: ApiEndpoint(
        "renew",
        lambda request: put(f"session/renew/{request.session}"),
        {200: sessions.renewed, 404: sessions.not_renewed},
        _session("write"),
    ),
    to.DestroySession: ApiEndpoint(
        "write",
        lambda request: put(f"session/destroy/{request.session}"),
        {200: sessions.destroyed},
        _session("write"),
        line="destroying",
    ),
    to.ReadSession: ApiEndpoint(
        "read",
        lambda request: get(f"session/info/{request.session}"),
        {200: sessions.informed},
        _session("read"),
    ),
    sessions.ReadSessions: ApiEndpoint(
        "read",
        lambda request: get("session/list", {"consistent": ""}),
        {200: sessions.listed},
        lambda request: READS_SESSIONS,
    ),
    to.ReadMaintenance: ApiEndpoint(
        "read",
        maintenance.read,
        {200: maintenance.shown},
        lambda request: f"{_rule('node', NODE, 'read')} {_rule('service_prefix', '', 'read')}",
    ),
    to.ReadService: ApiEndpoint("read", *_service(get, "service/", services.shown)),
    to.RegisterService: ApiEndpoint(
        "write", services.register, {200: services.done, 400: keys.refused}, _writes_service
    ),
    to.PassService: ApiEndpoint("write", *_service(put, "check/pass/service:", services.done)),
    to.DeregisterService: ApiEndpoint("write", *_service(put, "service/deregister/", services.done)),
    to.FailService: ApiEndpoint("write", *_service(put, "check/fail/service:", services.done)),
    to.FindService: ApiEndpoint("read", services.find, _FOUND, _writes_service),
    RegisterPresence: ApiEndpoint(
        "write", presence.register, {200: services.done, 400: keys.refused}, _writes_service
    ),
    TellPresence: ApiEndpoint("write", presence.tell, *_service(put, "", services.done)[1:]),
    to.Acquire: ApiEndpoint("write", keys.acquire, _LOCK, _writes_key),
    to.Rewrite: ApiEndpoint("write", keys.rewrite, _VALUE, _rewrites),
    to.WatchTenure: ApiEndpoint(
        "watch",
        keys.watch_tenure,
        {200: keys.tenure_shown, 404: keys.no_tenure},
        _writes_tenure,
    ),
    to.MarkTenure: ApiEndpoint(
        "write",
        keys.mark_tenure,
        {200: slots.written, 400: keys.refused, 409: keys.not_marked},
        _writes_tenure,
    ),
    to.Release: ApiEndpoint(
        "write",
        keys.release,
        {
            200: keys.released,
            400: keys.refused,
            409: keys.not_released,
            413: keys.refused,
            500: keys.not_locked,
        },
        _writes_key,
        line="releasing",
    ),
    to.ReadKey: ApiEndpoint("read", keys.read, _KEY, _reads_key, shows=(to.WatchKey,)),
    to.WatchKey: ApiEndpoint("watch", keys.watch, _KEY, _reads_key),
    to.HintKey: ApiEndpoint("watch", keys.watch, {200: keys.hinted, 404: keys.hinted}, _reads_key),
    to.ReadSlots: ApiEndpoint("read", slots.read, _SLOTS, _reads_prefix, shows=(to.WatchSlots,)),
    to.WatchSlots: ApiEndpoint("watch", slots.watch, _SLOTS, _reads_prefix),
    to.JoinSemaphore: ApiEndpoint("write", slots.step, _SLOT, _writes_prefix),
    to.TakeSlot: ApiEndpoint("write", slots.step, _SLOT, _writes_prefix),
    to.LeaveSemaphore: ApiEndpoint("write", slots.step, _RECORD, _writes_prefix, line="releasing"),
    slots.WriteSlotRecord: ApiEndpoint(
        "write",
        slots.step,
        _RECORD,
        lambda request: _rule("key", f"{request.prefix}{LOCK_SUFFIX}", "write"),
    ),
    ReadHistory: ApiEndpoint("read", keys.read, _KEY, _writes_history),
    WriteHistory: ApiEndpoint("write", fleet_requests.write, _OF_FLEET, _writes_history),
    to.ReadNotes: ApiEndpoint(
        "read",
        keys.read,
        {200: fleet_requests.notes_shown, 404: fleet_requests.no_notes},
        _writes_notes,
    ),
    to.WriteNotes: ApiEndpoint("write", fleet_requests.write_notes, _OF_FLEET, _writes_notes),
    ReadOrder: ApiEndpoint("read", keys.read, _KEY, _orders("list")),
    WriteOrder: ApiEndpoint("write", fleet_requests.write, _OF_FLEET, _orders("write")),
}
