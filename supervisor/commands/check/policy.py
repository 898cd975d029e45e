"""``policy``: the rights in Consul that a configuration needs, as the rules of a policy.

Each rule comes from the row of a request in ``adapters/consul/endpoints.py``, as the errors show it. So a new
right needs its row there, and one request of that class in ``_of_daemon`` or ``_of_commands``.
"""

import re
from collections.abc import Iterator

from supervisor.adapters.consul.endpoints import endpoint_of
from supervisor.adapters.consul.fleet_requests import ReadOrder, WriteHistory
from supervisor.adapters.consul.presence import RegisterPresence, reads_fleet
from supervisor.adapters.consul.query import OneOffClient
from supervisor.adapters.consul.responses import MalformedResponse, json_of, why
from supervisor.adapters.consul.semaphore import WriteSlotRecord
from supervisor.adapters.consul.sessions import ReadSessions
from supervisor.adapters.consul.token import TokenError
from supervisor.adapters.transport import ExchangeFailed
from supervisor.commands.check.agent import facts_of
from supervisor.config import Config, ConsulSettings, FleetSettings
from supervisor.core import requests as to
from supervisor.core.settings import ItemSettings, SemaphoreSettings, ServiceSettings

ASK_S = 5.0  # the agent answers this without its servers
_ANY = ("", 0.0, 0.0)  # the fields of a request on which no rule depends
_LEVELS = ("read", "list", "write")  # each grants what stands before it
_RULE = re.compile(r'(\w+) "([^"]*)" \{ policy = "(read|list|write)" \}')


def policy(config: Config, purpose: str) -> str:
    """Return one rule in each line, and no right twice. NODE stands for the agent's node."""
    rights: dict[tuple[str, str], str] = {}
    for settings in config.items:
        asked = _of_daemon(settings) if purpose == "daemon" else _of_commands(settings, purpose)
        for rules in (*map(_rules, asked), *_of_fleet(settings, config.fleet, purpose)):
            for resource, name, access in _RULE.findall(rules):
                right = (resource, name)
                rights[right] = max(access, rights.get(right, "read"), key=_LEVELS.index)
    found = sorted(rights.items(), key=lambda each: each[0][0])  # by resource, then as in the file
    return "".join(f'{kind} "{name}" {{ policy = "{access}" }}\n' for (kind, name), access in found)


def _reads(settings: ItemSettings) -> to.Request:
    if isinstance(settings, SemaphoreSettings):
        return to.ReadSlots(*_ANY, settings.prefix)
    return to.ReadKey(*_ANY, settings.key)


def _of_daemon(settings: ItemSettings) -> Iterator[to.Request]:
    yield _reads(settings)
    if settings.contend:
        yield to.CreateSession(*_ANY, settings.session)
        if isinstance(settings, SemaphoreSettings):
            yield to.JoinSemaphore(*_ANY, settings.prefix, "", b"")
        else:
            yield to.Release(*_ANY, settings.key, "", b"", ends_record=settings.fence is not None)
    if settings.service is not None:
        yield to.DeregisterService(*_ANY, settings.service)
    if settings.candidate_check is not None and settings.candidate_check.maintenance:
        yield to.ReadMaintenance(*_ANY)


def _of_commands(settings: ItemSettings, purpose: str) -> Iterator[to.Request]:
    yield _reads(settings)
    yield ReadSessions(*_ANY)
    if purpose == "operator":
        yield to.DestroySession(*_ANY, "")
        if isinstance(settings, SemaphoreSettings):
            yield WriteSlotRecord(*_ANY, settings.prefix, to.SlotRecord(), 0)


def _rules(request: to.Request) -> str:
    if isinstance(request, to.DestroySession):  # of any node
        return 'session_prefix "" { policy = "write" }'
    return endpoint_of(request).rule(request)


def _of_fleet(settings: ItemSettings, fleet: FleetSettings | None, purpose: str) -> Iterator[str]:
    """Yield the rules for ``fleet``. An operator writes orders, and a daemon deletes old ones."""
    if fleet is None:
        return
    if purpose == "drain":
        yield reads_fleet(fleet.service)
        return
    reads = _rules(ReadOrder(*_ANY, "", fleet.prefix))
    yield reads if purpose == "observer" else reads.replace('"list"', '"write"')
    writes = _rules(WriteHistory(*_ANY, "", fleet.prefix, b"", 0))
    if purpose == "daemon":
        yield _rules(RegisterPresence(*_ANY, ServiceSettings("", fleet.service), 0.0))
    else:
        yield reads_fleet(fleet.service)
        writes = writes.replace('"write"', '"read"')
    if settings.kind == "election":
        yield writes
        if settings.fence is not None and settings.fence.notes and purpose == "daemon":
            yield _rules(to.WriteNotes(*_ANY, settings.fence.notes, (), 0))


async def agents_node(settings: ConsulSettings) -> tuple[str, str]:
    """Return the name of the agent's node, and why nobody knows it. One of both is blank."""
    try:
        async with OneOffClient(settings) as consul:
            response = await consul.exchange(consul.codec.question("agent/self"), ASK_S)
        if response.status_code != 200:
            return "", f"Consul answers {why(response)}"
        node = facts_of(json_of(response, dict)).node
        return node, "" if node else "the agent does not report it"
    except (TokenError, ExchangeFailed, MalformedResponse) as error:
        return "", str(error)
