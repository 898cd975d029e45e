"""The handlers of the API, of keys, sessions, transactions and the agent itself, in this order.

Each takes a request, and returns an answer, or an Ask for a read that may have to wait.
"""

import base64
from dataclasses import replace
from typing import Any

from supervisor.rehearsal.devagent.api.call import (
    LEADER,
    ApiRequest,
    Ask,
    Fields,
    Settings,
    decode,
    refuse_large,
    text,
    text_of,
)
from supervisor.rehearsal.devagent.kv import Entry, Rejected
from supervisor.rehearsal.devagent.queries import (
    entry_shape,
    of_key,
    of_names,
    of_session,
    of_sessions,
    of_tree,
    session_shape,
)
from supervisor.rehearsal.devagent.sessions import (
    DELETE,
    RELEASE,
    SECOND_NS,
    SERF_HEALTH,
    TTL_MAX_NS,
    StoredSession,
    nanoseconds,
)
from supervisor.rehearsal.devagent.txn import OPERATIONS, OPERATIONS_MAX, Operation, is_read, run, write_alone
from supervisor.reporting.http_server import HttpAnswer

KEY, SESSION = "key name", "session"
# What an answer shows besides when all operations only read.
READ = {"Index": 0, "LastContact": 0, "KnownLeader": True, "ConsistencyLevel": ""}
FIELDS = {"verb", "key", "value", "flags", "index", "session", "namespace"}
VERSION = "1.8.7"  # of the Consul whose behaviour this is
SERVER_ADDRESS = "127.0.0.1:8300"


def read_key(call: ApiRequest) -> Ask:
    given = call.parameters
    if "keys" in given:
        return call.ask(lambda store: of_names(store, call.rest, given.get("separator", "")))
    if "recurse" in given:
        return call.ask(lambda store: of_tree(store, call.rest))
    call.need_rest(KEY)
    return call.ask(lambda store: of_key(store, call.rest, raw="raw" in given))


def write_key(call: ApiRequest) -> HttpAnswer:
    """Write a key: as it is, by check-and-set, or with its lock."""
    call.need_rest(KEY)
    given, body = call.parameters, call.request.body
    call.refuse_together("cas", "acquire", "release")
    session = given.get("acquire", given.get("release", ""))
    entry = Entry(call.rest, body, call.number("flags"), session, modify_index=call.number("cas"))
    refuse_large(body)
    verbs = {"acquire": "lock", "release": "unlock", "cas": "cas"}
    return _written(call, next((verb for name, verb in verbs.items() if name in given), "set"), entry)


def delete_key(call: ApiRequest) -> HttpAnswer:
    """Delete a key, by check-and-set if the request says so, or all keys with a prefix."""
    call.refuse_together("recurse", "cas")
    if "recurse" in call.parameters:
        return _written(call, "delete-tree", Entry(call.rest))
    call.need_rest(KEY)
    verb = "delete-cas" if "cas" in call.parameters else "delete"
    return _written(call, verb, Entry(call.rest, modify_index=call.number("cas")))


def _written(call: ApiRequest, verb: str, entry: Entry) -> HttpAnswer:
    call.check_datacenter()
    return call.json(write_alone(call.store, (verb, entry), call.now))


def create_session(call: ApiRequest) -> HttpAnswer:
    try:
        wanted = _wanted(Fields(decode(call.request.body or b"{}")), call.node)
    except ValueError as error:
        return text(400, f"Request decode failed: {error}")
    call.check_datacenter()
    session = call.store.create_session(_checked(wanted, call.settings), call.now)
    return call.json({"ID": session.id})


def renew_session(call: ApiRequest) -> HttpAnswer:
    call.need_rest(SESSION)
    call.check_datacenter()
    session = call.store.sessions.find(call.rest)
    if session is None:
        return text(404, f"Session id '{call.rest}' not found")
    call.store.sessions.renew(session, call.now)
    return call.json([session_shape(session)])


def destroy_session(call: ApiRequest) -> HttpAnswer:
    """End a session; the answer is true also for an unknown one."""
    call.need_rest(SESSION)
    call.check_datacenter()
    call.store.destroy_session(call.rest, call.now)
    return call.json(True)


def session_of(call: ApiRequest) -> Ask:
    call.need_rest(SESSION)
    return call.ask(lambda store: of_session(store, call.rest))


def all_sessions(call: ApiRequest) -> Ask:
    return call.ask(of_sessions)


def sessions_of_node(call: ApiRequest) -> Ask:
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


def transaction(call: ApiRequest) -> HttpAnswer:
    """Carry out a transaction; the answer is 409 when the server refused it."""
    refuse_large(call.request.body)
    try:
        operations = _operations(decode(call.request.body))
    except ValueError as error:
        return text(400, f"Failed to parse body: {error}")
    if len(operations) > OPERATIONS_MAX:
        words = f"Transaction contains too many operations ({len(operations)} > {OPERATIONS_MAX})"
        return text(413, words)
    call.check_datacenter()
    shown, failed = run(call.store, operations, call.now)
    results = [{"KV": entry_shape(entry)} for entry in shown]
    errors = [{"OpIndex": position, "What": what} for position, what in failed]
    body = {"Results": None if errors else results, "Errors": errors or None}
    reads = is_read(operations)
    answer = call.json(body | READ if reads else body, 409 if errors else 200)
    return replace(answer, headers=(*answer.headers, *LEADER)) if reads else answer


def _operations(body: Any) -> tuple[Operation, ...]:
    """Return the operations of a body. Raises ValueError."""
    if not isinstance(body, list):
        raise ValueError("a list of operations was expected")
    return tuple(_operation(Fields(wrapped)) for wrapped in body)


def _operation(wrapped: Fields) -> Operation:
    if wrapped.names != {"kv"}:
        raise ValueError("the embedded agent has operations on keys only (KV)")
    fields = Fields(wrapped.any("KV"))
    if others := fields.names - FIELDS:
        raise ValueError(f"unknown field {min(others):.50}")
    verb = fields.text("Verb")
    if verb not in OPERATIONS:
        raise ValueError(f"the embedded agent has no verb {verb:.50}, only {', '.join(sorted(OPERATIONS))}")
    entry = Entry(
        key=fields.text("Key"),
        value=base64.b64decode(fields.text("Value"), validate=True),
        flags=fields.number("Flags"),
        session=fields.text("Session"),
        modify_index=fields.number("Index"),
    )
    return verb, entry


def this_agent(call: ApiRequest) -> HttpAnswer:
    """Return the part of the agent's description of itself that clients read."""
    config = {
        "Datacenter": call.settings.datacenter,
        "NodeName": call.node,
        "Server": not call.settings.client_agent,
        "Version": VERSION,
    }
    stats = {"consul": {"leader_addr": SERVER_ADDRESS}}
    return call.json({"Config": config, "Member": {"Name": call.node, "Addr": "127.0.0.1"}, "Stats": stats})


def checks(call: ApiRequest) -> HttpAnswer:
    """Return the checks of the agent itself, of which it has none."""
    return call.json({})


def register(call: ApiRequest) -> HttpAnswer:
    try:
        given = Fields(decode(call.request.body))
        name, port, tags = given.text("Name"), given.number("Port"), given.items("Tags")
        facts = {"Tags": tags, "Meta": given.any("Meta") or {}, "Port": port}
        id_, address = given.text("ID", name), given.text("Address")
    except ValueError as error:
        return text(400, f"Request decode failed: {error}")
    call.store.services[call.node, id_] = {"ID": id_, "Service": name, **facts, "Address": address}
    return HttpAnswer(200)


def service(call: ApiRequest) -> HttpAnswer:
    found = call.store.services.get((call.node, call.rest))
    return text(404, f"unknown service ID: {call.rest}") if found is None else call.json(found)


def deregister(call: ApiRequest) -> HttpAnswer:
    """Remove an instance of a service; an unknown one counts as removed."""
    call.store.services.pop((call.node, call.rest), None)
    return HttpAnswer(200)


def pass_check(call: ApiRequest) -> HttpAnswer:
    """Let the check of an instance pass, which changes nothing, because nothing here names an instance."""
    known = (call.node, call.rest.removeprefix("service:")) in call.store.services
    return HttpAnswer(200) if known else text(500, f'CheckID "{call.rest}" does not have associated TTL')


def leader(call: ApiRequest) -> HttpAnswer:
    """Return the address of the leading server."""
    call.check_datacenter()
    return call.json(SERVER_ADDRESS)


def peers(call: ApiRequest) -> HttpAnswer:
    call.check_datacenter()
    return call.json([SERVER_ADDRESS])
