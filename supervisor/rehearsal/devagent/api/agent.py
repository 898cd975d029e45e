"""The agent itself and its servers: its name, its checks and services, and the leading server."""

from supervisor.rehearsal.devagent.api.bodies import Fields, decode
from supervisor.rehearsal.devagent.api.call import ApiRequest, text
from supervisor.reporting.http_server import HttpAnswer

VERSION = "1.8.7"  # of the Consul whose behaviour this is
SERVER_ADDRESS = "127.0.0.1:8300"


def this(call: ApiRequest) -> HttpAnswer:
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
