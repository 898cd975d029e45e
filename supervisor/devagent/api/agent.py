"""``/v1/agent/``, ``/v1/health/``, ``/v1/catalog/``, ``/v1/status/``: what sessions and clients need.

Checks are registered at the agent of a node and take effect at once. None is ever run: a check has
a TTL and is kept passing by requests. Whatever asks for another kind is refused.
"""

from dataclasses import replace
from typing import Any

from supervisor.devagent.api.bodies import Fields
from supervisor.devagent.api.call import Answered, Ask, Call, text
from supervisor.devagent.catalog import CRITICAL, PASSING, STATUSES, WARNING, Check, Node, Service
from supervisor.devagent.gotext import SECOND_NS, load_json, parse_duration_ns
from supervisor.devagent.messages import Answer, Headers
from supervisor.devagent.queries import ChecksQuery
from supervisor.devagent.shapes import check_shape

VERSION = "1.8.7"  # of the Consul whose behaviour this is
SERVER_ADDRESS = "127.0.0.1:8300"
NODE_ID = "00000000-0000-0000-0000-000000000000"
NOT_RUN = ("http", "tcp", "grpc", "script", "args", "dockercontainerid", "shell", "aliasnode", "aliasservice")
LEADING: Headers = (("X-Consul-Effective-Consistency", "leader"),)


def this(call: Call) -> Answer:
    """Who the agent is; of Consul's answer only what clients look at."""
    config = {
        "Datacenter": call.settings.datacenter,
        "NodeName": call.node,
        "NodeID": NODE_ID,
        "Revision": "",
        "Server": not call.settings.client_agent,
        "Version": VERSION,
    }
    member = {"Name": call.node, "Addr": "127.0.0.1", "Port": 8301, "Status": 1}
    return call.json({"Config": config, "DebugConfig": {}, "Stats": {}, "Member": member, "Meta": {}})


def leader(call: Call) -> Answer:
    """The leading server, or nothing when there is none."""
    call.to_server(stale=True)
    return call.json(SERVER_ADDRESS if call.has_leader else "")


def peers(call: Call) -> Answer:
    """The servers: one."""
    call.to_server(stale=True)
    return call.json([SERVER_ADDRESS])


def nodes(call: Call) -> Answer:
    """The names of all nodes."""
    call.to_server()
    shown = [
        {"ID": NODE_ID, "Node": node.name, "Address": "127.0.0.1", "Datacenter": call.settings.datacenter}
        for _, node in sorted(call.store.catalog.nodes.items())
    ]
    return call.json(shown)


def health(call: Call) -> Ask:
    """The checks of a node."""
    call.check_options()
    return call.ask(ChecksQuery(call.rest))


def checks(call: Call) -> Answer:
    """This agent's own checks, by their ids."""
    node = _node(call)
    known = sorted((check.id, check) for check in node.checks.values() if check.kind)
    return call.json({name: check_shape(node.name, check, local=True) for name, check in known})


def register_check(call: Call) -> Answer:
    """A check with a TTL; critical unless it says otherwise."""
    node = _node(call)
    check = _check(_body(call))
    if not check.name:
        return text(400, "Missing check name")
    if check.service_id:
        service = node.services.get(check.service_id)
        if service is None:
            return text(500, f'ServiceID "{check.service_id}" does not exist')
        check = replace(check, service_name=service.name)
    call.store.put_check(node, check, call.now)
    return Answer(200)


def deregister_check(call: Call) -> Answer:
    """A check is registered no more; an unknown one was not."""
    if not call.rest:
        return text(500, "CheckID missing")
    call.store.remove_check(_node(call), call.rest, call.now)
    return Answer(200)


def pass_check(call: Call) -> Answer:
    """The check passes, for as long as its TTL."""
    return _set(call, PASSING, call.parameters.get("note", ""))


def warn_check(call: Call) -> Answer:
    """The check warns, which ends no session."""
    return _set(call, WARNING, call.parameters.get("note", ""))


def fail_check(call: Call) -> Answer:
    """The check is critical: the sessions bound to it end."""
    return _set(call, CRITICAL, call.parameters.get("note", ""))


def update_check(call: Call) -> Answer:
    """Any of the three, by the body."""
    fields = _body(call)
    status = fields.text("Status")
    if status not in STATUSES:
        return text(400, f"Invalid check status: '{status}'")
    return _set(call, status, fields.text("Output"))


def register_service(call: Call) -> Answer:
    """A service with its checks."""
    node, fields = _node(call), _body(call)
    name = fields.text("Name")
    if not name:
        return text(400, "Missing service name")
    service = Service(fields.text("ID") or name, name, fields.texts("Tags"), int(fields.unsigned("Port")))
    wanted = ([Fields(fields.any("Check"), "", "Check")] if fields.any("Check") is not None else []) + (
        fields.objects("Checks", "CheckType.Checks", "structs.CheckType")
    )
    made = [_service_check(service, check, at, len(wanted)) for at, check in enumerate(wanted, start=1)]
    node.services[service.id] = service
    for check in made:
        call.store.put_check(node, check, call.now)
    return Answer(200)


def deregister_service(call: Call) -> Answer:
    """A service and its checks are registered no more; the sessions bound to them end."""
    node = _node(call)
    if node.services.pop(call.rest, None) is not None:
        for check in tuple(node.checks.values()):
            if check.service_id == call.rest:
                call.store.remove_check(node, check.id, call.now)
    return Answer(200)


def services(call: Call) -> Answer:
    """This agent's own services, by their ids."""
    shown = {
        service.id: {
            "ID": service.id,
            "Service": service.name,
            "Tags": list(service.tags),
            "Meta": {},
            "Port": service.port,
            "Address": "",
            "Weights": {"Passing": 1, "Warning": 1},
            "EnableTagOverride": False,
        }
        for _, service in sorted(_node(call).services.items())
    }
    return call.json(shown)


def _node(call: Call) -> Node:
    node = call.store.catalog.node(call.node)
    if node is None:
        raise Answered(text(500, f"the agent of {call.node} has left the cluster"))
    return node


def _body(call: Call) -> Fields:
    """Raises Answered."""
    try:
        body = load_json(call.request.body)
        return Fields(body, "", "structs.CheckDefinition")
    except ValueError as error:
        raise Answered(text(400, f"Request decode failed: {error}")) from None


def _set(call: Call, status: str, output: str) -> Answer:
    check = _node(call).checks.get(call.rest.lower())
    if check is None or check.ttl_s is None:
        return text(500, f'CheckID "{call.rest}" does not have associated TTL')
    call.store.set_check(call.node, call.rest, status, output, call.now)
    return Answer(200)


def _check(fields: Fields) -> Check:
    """Raises Answered."""
    name = fields.text("Name")
    status = fields.text("Status")
    if status and status not in STATUSES:
        raise Answered(text(400, "Bad check status"))
    for kind in NOT_RUN:
        if fields.any(kind):
            words = f"the embedded agent runs no checks ({fields.spelled(kind)}): give it a TTL"
            raise Answered(text(400, words))
    return Check(
        id=fields.text("ID") or fields.text("CheckID") or name,
        name=name,
        status=status or CRITICAL,
        ttl_s=_ttl_s(fields.any("TTL"), name),
        kind="ttl",
        notes=fields.text("Notes"),
        service_id=fields.text("ServiceID"),
    )


def _ttl_s(value: Any, name: str) -> float:
    try:
        ttl_s = parse_duration_ns(value) / SECOND_NS if isinstance(value, str) else 0.0
    except ValueError as error:
        raise Answered(text(400, f"Request decode failed: {error}")) from None
    if ttl_s <= 0 and name:
        raise Answered(text(400, "Invalid check: TTL must be > 0 for TTL checks"))
    return ttl_s


def _service_check(service: Service, fields: Fields, position: int, count: int) -> Check:
    check = _check(fields)
    _ttl_s(fields.any("TTL"), service.name)
    default = f"service:{service.id}" + (f":{position}" if count > 1 else "")
    return replace(
        check,
        id=check.id or default,
        name=check.name or f"Service '{service.name}' check",
        service_id=service.id,
        service_name=service.name,
    )
