"""``/v1/session/``: create, renew, destroy, info, list."""

from dataclasses import replace

from supervisor.rehearsal.devagent.api.bodies import Fields, decode, text_of
from supervisor.rehearsal.devagent.api.call import ApiRequest, Ask, Settings, text
from supervisor.rehearsal.devagent.kv import Rejected
from supervisor.rehearsal.devagent.queries import of_session, of_sessions, session_shape
from supervisor.rehearsal.devagent.sessions import (
    DELETE,
    RELEASE,
    SECOND_NS,
    SERF_HEALTH,
    TTL_MAX_NS,
    StoredSession,
    nanoseconds,
)
from supervisor.reporting.http_server import HttpAnswer

SESSION = "session"


def create(call: ApiRequest) -> HttpAnswer:
    try:
        wanted = _wanted(Fields(decode(call.request.body or b"{}")), call.node)
    except ValueError as error:
        return text(400, f"Request decode failed: {error}")
    call.check_datacenter()
    session = call.store.create_session(_checked(wanted, call.settings), call.now)
    return call.json({"ID": session.id})


def renew(call: ApiRequest) -> HttpAnswer:
    call.need_rest(SESSION)
    call.check_datacenter()
    session = call.store.sessions.find(call.rest)
    if session is None:
        return text(404, f"Session id '{call.rest}' not found")
    call.store.sessions.renew(session, call.now)
    return call.json([session_shape(session)])


def destroy(call: ApiRequest) -> HttpAnswer:
    """End a session; the answer is true also for an unknown one."""
    call.need_rest(SESSION)
    call.check_datacenter()
    call.store.destroy_session(call.rest, call.now)
    return call.json(True)


def info(call: ApiRequest) -> Ask:
    call.need_rest(SESSION)
    return call.ask(lambda store: of_session(store, call.rest))


def listed(call: ApiRequest) -> Ask:
    return call.ask(of_sessions)


def of_node(call: ApiRequest) -> Ask:
    call.need_rest("node name")
    return call.ask(lambda store: of_sessions(store, call.rest))


def _wanted(fields: Fields, node: str) -> StoredSession:
    """Return the session that a body describes. Raises ValueError."""
    checks = [text_of(check) for check in fields.items("NodeChecks")]
    return StoredSession(
        id="",
        node=fields.text("Node", node),
        name=fields.text("Name"),
        ttl=fields.text("TTL"),
        lock_delay_ns=nanoseconds(fields.text("LockDelay", "15s")),
        behavior=fields.text("Behavior") or RELEASE,
        node_checks=tuple(checks) if "nodechecks" in fields.names else (SERF_HEALTH,),
        service_checks=tuple(Fields(check).text("ID") for check in fields.items("ServiceChecks")),
    )


def _checked(wanted: StoredSession, settings: Settings) -> StoredSession:
    """Return the session with its TTL, after the checks of the server. Raises Rejected."""
    if not wanted.node:
        raise Rejected("Must provide Node")
    if wanted.behavior not in (RELEASE, DELETE):
        raise Rejected(f"Invalid Behavior setting '{wanted.behavior}'")
    if not wanted.ttl:
        return wanted
    try:
        ttl_ns = nanoseconds(wanted.ttl)
    except ValueError as error:
        raise Rejected(f"Session TTL '{wanted.ttl}' invalid: {error}") from None
    if ttl_ns != 0 and not settings.session_ttl_min_s * SECOND_NS <= ttl_ns <= TTL_MAX_NS:
        bounds = f"[{settings.session_ttl_min_s:g}s=24h0m0s]"
        raise Rejected(f"Invalid Session TTL '{ttl_ns}', must be between {bounds}")
    return replace(wanted, ttl_ns=ttl_ns)
