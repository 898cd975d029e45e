"""``/v1/session/``: create, renew, destroy, info, node, list."""

from dataclasses import replace
from typing import Any

from supervisor.devagent.api.bodies import Fields
from supervisor.devagent.api.call import Answered, Ask, Call, Settings, refusal, text
from supervisor.devagent.catalog import SERF_HEALTH
from supervisor.devagent.gotext import (
    SECOND_NS,
    UINT64_MAX,
    format_duration,
    load_json,
    parse_duration_ns,
)
from supervisor.devagent.messages import Answer, Refused
from supervisor.devagent.queries import SessionQuery, SessionsQuery
from supervisor.devagent.sessions import DELETE, RELEASE, TTL_MAX_NS, Session, look_up
from supervisor.devagent.shapes import session_shape

LOCK_DELAY_SECONDS_BELOW = 1000  # a smaller number is taken for seconds, whatever its unit was
BAD_ID_HEADERS = (("X-Consul-Index", "1"), ("X-Consul-Knownleader", "false"), ("X-Consul-Lastcontact", "0"))


def create(call: Call) -> Answer:
    """A new session. A body in chunks is ignored, as Consul does."""
    call.refuse_namespace()
    body = call.request.body if call.request.sized else b""
    try:
        wanted = _wanted(load_json(body) if body else None, call.node)
    except ValueError as error:
        return text(400, f"Request decode failed: {error}")
    call.to_server()
    session = call.store.create_session(_checked(wanted, call.settings), call.now)
    return call.json({"ID": session.id})


def renew(call: Call) -> Answer:
    """A session's time begins again."""
    call.refuse_namespace()
    _need_session(call)
    call.to_server()
    session = call.store.sessions.find(call.rest)
    if session is None:
        return text(404, f"Session id '{call.rest}' not found")
    call.store.sessions.renew(session, call.now)
    return call.json([session_shape(session)])


def destroy(call: Call) -> Answer:
    """End a session; true for an unknown one, too."""
    call.refuse_namespace()
    _need_session(call)
    call.to_server()
    call.store.destroy_session(call.rest, call.now)
    return call.json(True)


def info(call: Call) -> Answer | Ask:
    """One session."""
    call.check_options()
    call.refuse_namespace()
    _need_session(call)
    try:
        look_up(call.rest)
    except Refused as refused:
        bad = refusal(call.settings, str(refused))
        return Answer(bad.status, bad.body, (*bad.headers, *BAD_ID_HEADERS))
    return call.ask(SessionQuery(call.rest))


def of_node(call: Call) -> Answer | Ask:
    """The sessions of a node."""
    call.check_options()
    call.refuse_namespace()
    if not call.rest:
        return text(400, "Missing node name")
    return call.ask(SessionsQuery(call.rest))


def listed(call: Call) -> Ask:
    """All sessions."""
    call.check_options()
    call.refuse_namespace()
    return call.ask(SessionsQuery())


def _need_session(call: Call) -> None:
    if not call.rest:
        raise Answered(text(400, "Missing session"))


def _wanted(body: Any, node: str) -> Session:
    """The session that a body describes. Raises ValueError with the words of Go's decoder."""
    fields = Fields(body, "", "struct { LockDelay interface {}; *structs.Alias }")
    node_checks, checks = _node_checks(fields)
    services = fields.objects("ServiceChecks", "ServiceCheck.ServiceChecks", "structs.ServiceCheck")
    given = isinstance(fields.any("ServiceChecks"), list)
    return Session(
        id="",
        node=fields.text("Node", node),
        name=fields.text("Name"),
        ttl=fields.text("TTL"),
        lock_delay_ns=_lock_delay_ns(fields.any("LockDelay")),
        behavior=fields.text("Behavior", RELEASE, "structs.SessionBehavior") or RELEASE,
        node_checks=node_checks,
        service_checks=tuple(service.text("ID") for service in services) if given else None,
        checks=checks,
    )


def _node_checks(fields: Fields) -> tuple[tuple[str, ...] | None, tuple[str, ...]]:
    """NodeChecks and the older Checks; either being empty ends the other's default."""
    default = (SERF_HEALTH,)
    checks = fields.texts("Checks", "types.CheckID") if fields.has("Checks") else default
    node_checks: tuple[str, ...] | None = default
    if fields.has("NodeChecks"):
        node_checks = fields.texts("NodeChecks") if fields.any("NodeChecks") is not None else None
    if not checks:
        return (), ()
    return node_checks, () if not node_checks or checks == default else checks


def _lock_delay_ns(value: Any) -> int:
    """Text is a duration; of a number, only its size says whether it means seconds."""
    if value is None:
        return 15 * SECOND_NS
    delay_ns = 0
    if isinstance(value, str):
        delay_ns = parse_duration_ns(value)
    elif isinstance(value, int | float) and not isinstance(value, bool):
        delay_ns = _int64(int(value)) if abs(value) < 2**63 else -(2**63)
    return _int64(delay_ns * SECOND_NS) if delay_ns < LOCK_DELAY_SECONDS_BELOW else delay_ns


def _int64(number: int) -> int:
    """The number as 64 bits with a sign keep it."""
    return (number + 2**63 & UINT64_MAX) - 2**63


def _checked(wanted: Session, settings: Settings) -> Session:
    """Behavior and TTL as the server checks them. Raises Refused."""
    if not wanted.node:
        raise Refused("Must provide Node")
    if wanted.behavior not in (RELEASE, DELETE):
        raise Refused(f"Invalid Behavior setting '{wanted.behavior}'")
    if not wanted.ttl:
        return wanted
    try:
        ttl_ns = parse_duration_ns(wanted.ttl)
    except ValueError as error:
        raise Refused(f"Session TTL '{wanted.ttl}' invalid: {error}") from None
    ttl_min_ns = round(settings.session_ttl_min_s * SECOND_NS)
    if ttl_ns != 0 and not ttl_min_ns <= ttl_ns <= TTL_MAX_NS:
        bounds = f"[{format_duration(ttl_min_ns)}={format_duration(TTL_MAX_NS)}]"
        raise Refused(f"Invalid Session TTL '{ttl_ns}', must be between {bounds}")
    return replace(wanted, ttl_ns=ttl_ns)
