"""The agent itself and its servers: its name, its checks, and the leading server."""

from supervisor.devagent.api.call import ApiRequest
from supervisor.devagent.messages import Answer

VERSION = "1.8.7"  # of the Consul whose behaviour this is
SERVER_ADDRESS = "127.0.0.1:8300"


def this(call: ApiRequest) -> Answer:
    """Return the part of the agent's description of itself that clients read."""
    config = {
        "Datacenter": call.settings.datacenter,
        "NodeName": call.node,
        "Server": not call.settings.client_agent,
        "Version": VERSION,
    }
    return call.json({"Config": config, "Member": {"Name": call.node, "Addr": "127.0.0.1"}})


def checks(call: ApiRequest) -> Answer:
    """Return the checks that were registered with the agent. It has none, because it cannot register any."""
    return call.json({})


def leader(call: ApiRequest) -> Answer:
    """Return the address of the leading server, blank when no server leads."""
    call.check_datacenter()
    return call.json(SERVER_ADDRESS if call.has_leader else "")
