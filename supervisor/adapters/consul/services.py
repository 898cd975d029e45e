"""Consul's HTTP API for one instance of a service at the local agent.

The meta key ``managed-by`` marks an instance as ours. The agent answers from its own memory, and tells its
servers afterwards. Versions differ in the status with which they report an unknown id: 404, or 500.
"""

from collections.abc import Callable
from urllib.parse import quote

import requests

from supervisor.adapters.consul.calls import Call, put, transaction
from supervisor.adapters.consul.responses import MalformedResponse, error_text, failed, json_of
from supervisor.core.outcomes import Done, Instance, Outcome
from supervisor.core.requests import FindService, PassService, ReadService, RegisterService, ServiceRequest

OURS = {"managed-by": "consul-supervisor"}
DEREGISTER_AFTER = "1m"  # the shortest time after which Consul removes an instance that is critical


def encode(method: Callable[[str], Call], path: str) -> Callable[[ServiceRequest], Call]:
    """Return the encoding of a request whose path ends with the id, by which the check is named as well."""
    return lambda request: method(f"agent/{path}{quote(request.service.id, safe='')}")


def register(request: RegisterService) -> Call:
    service, ttl = request.service, f"{round(request.ttl_s * 1000)}ms"
    status = "passing" if request.passing else "critical"
    check = {"TTL": ttl, "Status": status, "DeregisterCriticalServiceAfter": DEREGISTER_AFTER}
    facts = {"Name": service.name, "Port": service.port, "Address": service.address, "Tags": service.tags}
    meta = {**dict(service.meta), **OURS}
    return put("agent/service/register", {"ID": service.id, **facts, "Meta": meta, "Check": check})


def shown(request: ServiceRequest, response: requests.Response) -> Outcome:
    meta = json_of(response, dict).get("Meta")
    return Instance.OURS if isinstance(meta, dict) and meta.items() >= OURS.items() else Instance.FOREIGN


def unknown(request: ServiceRequest, response: requests.Response) -> Outcome:
    """Return that the agent has no instance of this id, or no check of it, if it says so.

    The texts are those of agent/agent_endpoint.go and agent/agent.go, updateTTLCheck, of 1.8.7 and later.
    """
    words = error_text(response).lower()
    if words.startswith("unknown service"):
        return Instance.ABSENT
    no_check = words.startswith("unknown check") or words.endswith("does not have associated ttl")
    return Instance.UNKNOWN if no_check else failed(response)


def by_token(
    registered: dict[str, str | None], request: ServiceRequest, outcome: Outcome, token: str | None
) -> Outcome:
    """Return the outcome, changed where the instance was not registered with the token of this request.

    An agent tells its servers of an instance and of its check with the token of the registration, and answers
    200 where they refuse it. Since 1.15 it deregisters with its own token.
    registered: by id, the token with which this process has registered the instance last.
    """
    id_ = request.service.id
    match request, outcome:
        case RegisterService(), Done():
            registered[id_] = token
        case ReadService(), Instance.OURS if (id_, token) not in registered.items():
            return Instance.FORMER
        case PassService(), Done() if (id_, token) not in registered.items():
            return Instance.UNKNOWN
    return outcome


def find(request: FindService) -> Call:
    return transaction([{"Node": request.node, "CheckID": f"service:{request.service.id}"}])


def found(request: FindService, response: requests.Response) -> Outcome:
    """Return what the servers have. UNKNOWN: they do not show it to this token."""
    if response.status_code == 200 and json_of(response, dict).get("Results"):
        is_critical = b'"Status":"critical"' in response.content.replace(b" ", b"")
        return Instance.LEFT if is_critical else Instance.NAMED
    return Instance.ABSENT if "doesn't exist" in error_text(response) else Instance.UNKNOWN


def done(request: ServiceRequest, response: requests.Response) -> Outcome:
    """Return that the request was applied, which Consul says without a word."""
    if response.content.strip() not in (b"", b"null", b"true"):
        raise MalformedResponse("a body")
    return Done()
