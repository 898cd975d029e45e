"""``/v1/session/``: create, renew, destroy, info, list."""

from dataclasses import replace

from supervisor.devagent.api.bodies import Fields, decode, text_of
from supervisor.devagent.api.call import Ask, Call, Settings, text
from supervisor.devagent.durations import SECOND_NS, parse_ns
from supervisor.devagent.messages import Answer, Refused
from supervisor.devagent.queries import SessionQuery, SessionsQuery
from supervisor.devagent.sessions import DELETE, RELEASE, SERF_HEALTH, TTL_MAX_NS, Session
from supervisor.devagent.shapes import session_shape

SESSION = "session"


def create(call: Call) -> Answer:
    """Make a session. Like Consul this ignores a body that comes in chunks."""
    body = call.request.body if call.request.sized else b""
    try:
        wanted = _wanted(Fields(decode(body or b"{}")), call.node)
    except ValueError as error:
        return text(400, f"Request decode failed: {error}")
    call.to_server()
    session = call.store.create_session(_checked(wanted, call.settings), call.now)
    return call.json({"ID": session.id})


def renew(call: Call) -> Answer:
    """Start a session's time again."""
    call.need_rest(SESSION)
    call.to_server()
    session = call.store.sessions.find(call.rest)
    if session is None:
        return text(404, f"Session id '{call.rest}' not found")
    call.store.sessions.renew(session, call.now)
    return call.json([session_shape(session)])


def destroy(call: Call) -> Answer:
    """End a session; the answer is true also for an unknown one."""
    call.need_rest(SESSION)
    call.to_server()
    call.store.destroy_session(call.rest, call.now)
    return call.json(True)


def info(call: Call) -> Ask:
    """Read a session."""
    call.need_rest(SESSION)
    return call.ask(SessionQuery(call.rest))


def listed(call: Call) -> Ask:
    """List all sessions."""
    return call.ask(SessionsQuery())


def _wanted(fields: Fields, node: str) -> Session:
    """Return the session that a body describes. Raises ValueError."""
    checks = [text_of(check) for check in fields.items("NodeChecks")]
    return Session(
        id="",
        node=fields.text("Node", node),
        name=fields.text("Name"),
        ttl=fields.text("TTL"),
        lock_delay_ns=parse_ns(fields.text("LockDelay", "15s")),
        behavior=fields.text("Behavior") or RELEASE,
        node_checks=tuple(checks) if "nodechecks" in fields.names else (SERF_HEALTH,),
        service_checks=tuple(Fields(check).text("ID") for check in fields.items("ServiceChecks")),
    )


def _checked(wanted: Session, settings: Settings) -> Session:
    """Return the session with its TTL, after the checks of the server. Raises Refused."""
    if not wanted.node:
        raise Refused("Must provide Node")
    if wanted.behavior not in (RELEASE, DELETE):
        raise Refused(f"Invalid Behavior setting '{wanted.behavior}'")
    if not wanted.ttl:
        return wanted
    try:
        ttl_ns = parse_ns(wanted.ttl)
    except ValueError as error:
        raise Refused(f"Session TTL '{wanted.ttl}' invalid: {error}") from None
    if ttl_ns != 0 and not settings.session_ttl_min_s * SECOND_NS <= ttl_ns <= TTL_MAX_NS:
        bounds = f"[{settings.session_ttl_min_s:g}s=24h0m0s]"
        raise Refused(f"Invalid Session TTL '{ttl_ns}', must be between {bounds}")
    return replace(wanted, ttl_ns=ttl_ns)
