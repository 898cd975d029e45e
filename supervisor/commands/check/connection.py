"""Requests of ``check --connect`` to the real Consul, about its leader, its agent and the token's rights.

No request has an effect. Rights are found out by writes that Consul checks and cannot carry out: a
check-and-set at an index that no key has, and a session bound to a check that does not exist. Consul
answers both with the reason, after it has checked the token. So a right is known without the name of the
agent's node, and without Consul's internal API. One deadline covers all requests.
"""

import asyncio
import socket
from dataclasses import replace
from ipaddress import ip_address
from typing import Any
from urllib.parse import quote
from uuid import uuid4

import requests

from supervisor.adapters.consul import permissions
from supervisor.adapters.consul.codec import TOKEN
from supervisor.adapters.consul.fleet_requests import ReadOrder, history_key, orders_folder
from supervisor.adapters.consul.query import OneOffClient
from supervisor.adapters.consul.responses import MalformedResponse, error_text, json_of, why
from supervisor.adapters.consul.sessions import NO_PATH, ReadSessions
from supervisor.adapters.consul.shared.query import ListQuery
from supervisor.adapters.transport import ExchangeFailed, FailureKind
from supervisor.commands.check import agent, rights
from supervisor.commands.check.agent import AgentFacts
from supervisor.commands.check.findings import Finding, Level, together
from supervisor.config import Config
from supervisor.core.claim.record import TENURE_SUFFIX
from supervisor.core.outcomes import Created, KeyView, Outcome
from supervisor.core.requests import CreateSession, DestroySession, ReadKey, Request, WatchTenure
from supervisor.core.settings import ItemSettings, SemaphoreSettings

CONNECT_S = 20.0  # Consul holds a request for 7 s while it has no leader, and an item takes a millisecond
_COMMAND = ("", 0.0, CONNECT_S)  # the fields that only requests of the daemon need, and the timeout
NO_INDEX = 2**63 - 1  # higher than any index that Consul has reached


async def check_connection(config: Config, hostname: str) -> list[Finding]:
    """Return the findings about Consul, the most important first. Raises TokenError."""
    async with OneOffClient(config.consul) as consul:
        return await _Checker(config, consul).findings(hostname)


class _Checker:
    """Sends the requests of one run one after another, the reads over one connection."""

    def __init__(self, config: Config, consul: OneOffClient) -> None:
        self._config, self._datacenter = config, config.consul.datacenter
        self._consul, self._codec = consul, consul.codec
        self._deadline = asyncio.get_running_loop().time() + CONNECT_S
        self._holders: set[str] = set()

    async def findings(self, hostname: str) -> list[Finding]:
        items, fleet = self._config.items, self._config.fleet
        try:
            no_path, leader = await self._leader()
        except (ExchangeFailed, MalformedResponse) as failure:
            remedy = "start the agent, or correct consul.address"
            if isinstance(failure, ExchangeFailed) and failure.kind is FailureKind.TLS:
                remedy = "correct consul.tls, or the variables of Consul for TLS"
            return [Finding("reachable", Level.ERROR, str(failure), remedy)]
        reachable = Finding("reachable", Level.OK, f"Consul answers at {self._consul.peer}")
        if no_path:
            facts, _ = await self._agent(hostname, ())
            own = facts.datacenter if facts else ""
            return [reachable, agent.of_no_path(str(self._datacenter), own, no_path)]
        found = [reachable, agent.of_leader(leader)]
        if not leader:
            return found
        try:
            facts, of_agent = await self._agent(hostname, items)
            raft = await self._asked(self._codec.question("operator/raft/configuration"), dict)
            found += of_agent + agent.of_voters((raft or {}).get("Servers") or ())
            if of_agent[0].what == "token":
                return found
            for settings in items:
                found += together(await self._rights(settings, facts.node if facts else ""))
            listed = await self._outcome(ReadSessions(*_COMMAND))
            found.append(rights.of_sessions(listed, self._holders, facts))
            if fleet is not None:
                key = history_key(fleet.prefix, str(uuid4()))
                found.append(rights.of_history(history_key(fleet.prefix, ""), *await self._writes(key)))
                found.append(await self._orders(fleet.prefix))
                said = await self._writes_service(fleet.service)
                found += rights.of_fleet(fleet.service, said, await self._consul.present(fleet.service))
            if facts and (fleet or any(settings.service for settings in items)):
                asks = self._codec.question(f"catalog/node/{quote(facts.node, safe='')}")
                found += agent.of_deregistration(facts, await self._asked(asks, dict) or {})
            if fenced := tuple(settings for settings in items if settings.fence is not None):
                on = await self._asked(self._codec.question("catalog/service/consul"), list) or ()
                servers = {str(each.get("Node")) for each in on if isinstance(each, dict)}
                found.append(agent.of_fence(fenced, servers, listed, facts))
                for notes in {settings.fence.notes for settings in fenced if settings.fence} - {""}:
                    found.append(rights.of_shots(notes, *await self._writes(notes)))
                for settings in fenced:
                    shown = await self._outcome(WatchTenure(*_COMMAND, settings.key))
                    found += agent.of_target(settings, shown, facts.node if facts else None)
        except ExchangeFailed as failure:
            found.append(Finding("rest", Level.UNTOLD, f"some requests were not answered: {failure}"))
        return found

    async def _leader(self) -> tuple[str, str]:
        """Return why the datacenter cannot be reached, and the address of Consul's leader.

        Blank: the datacenter can be reached, or there is no leader. Raises MalformedResponse.
        """
        response = await self._exchange(self._codec.question("status/leader"))
        if response.status_code == 500 and NO_PATH in why(response):
            return why(response), ""
        if response.status_code == 500:
            return "", ""  # an agent that knows no server
        if response.status_code != 200:
            raise MalformedResponse(f"no Consul answers at {self._consul.peer}: {why(response)}")
        return "", json_of(response, str)

    async def _agent(
        self, hostname: str, items: tuple[ItemSettings, ...]
    ) -> tuple[AgentFacts | None, list[Finding]]:
        response = await self._exchange(self._codec.question("agent/self"))
        if response.status_code == 403 and permissions.UNKNOWN_TOKEN in error_text(response):
            return None, [rights.of_token(why(response))]
        try:
            if response.status_code != 200:
                raise MalformedResponse(why(response))
            answer: dict[str, Any] = json_of(response, dict)
        except MalformedResponse as error:
            return None, agent.unknown_agent(str(error), response.status_code == 403)
        facts = agent.facts_of(answer)
        is_local = _is_local(facts.address)
        found = agent.of_agent(facts, hostname, is_local=is_local, items=items)
        found += agent.of_servers(facts, self._config.consul.leader_change_s, items)
        return facts, found + agent.of_datacenter(self._datacenter, facts.datacenter, items)

    async def _rights(self, settings: ItemSettings, node: str) -> list[Finding]:
        found = []
        for shown, key in _keys_of(settings).items():
            read = await self._outcome(ReadKey(*_COMMAND, key))
            if isinstance(read, KeyView):
                self._holders |= {holder.session for holder in read.holders}
            found.append(rights.of_read(settings, shown, read))
            if settings.contend:
                response = await self._exchange(self._codec.transaction(impossible_write(key)))
                found.append(rights.of_write(settings, shown, why(response)))
        if settings.contend:
            found.append(await self._session(settings, node))
        if settings.service is not None:
            name = settings.service.name
            rule = f'give the token: service "{name}" {{ policy = "write" }}'
            said = await self._writes_service(name)
            found.append(rights.of_write(settings, f"the service {name}", said, rule))
            found.append(rights.of_dns(settings, await self._dns_sees(name, node)))
        if settings.candidate_check is not None and settings.candidate_check.maintenance:
            found.append(rights.of_maintenance(settings, node, await self._sees_checks(node)))
        return found

    async def _writes(self, key: str) -> tuple[Outcome, str]:
        """Return the outcome of a read of the key, and Consul's answer to an impossible write."""
        read = await self._outcome(ReadKey(*_COMMAND, key))
        return read, why(await self._exchange(self._codec.transaction(impossible_write(key))))

    async def _orders(self, prefix: str) -> Finding:
        """Return the finding about the orders. A list alone hides what the token may not read."""
        place = orders_folder(prefix)
        query = ListQuery(place, None, 0.0, consistent=True, timeout_s=CONNECT_S)
        listed = await self._exchange(self._codec.encode_list(query))
        read = await self._outcome(ReadOrder(*_COMMAND, place, prefix))
        return rights.of_orders(place, read, lists=listed.status_code != 403)

    async def _writes_service(self, name: str) -> str:
        """Return Consul's answer to another impossible write, of an instance of this service."""
        entry = {"ID": str(uuid4()), "Service": name, "ModifyIndex": NO_INDEX}
        write = [{"Service": {"Verb": "cas", "Node": entry["ID"], "Service": entry}}]
        return why(await self._exchange(self._codec.question("txn", write)))

    async def _dns_sees(self, service: str, node: str) -> bool | None:
        """Return whether a request without a token, as DNS sends it, may read the service and this node."""
        request = self._codec.question(f"agent/health/service/name/{quote(service, safe='')}")
        request.headers.pop(TOKEN, None)
        denied = (await self._exchange(request)).status_code == 403
        return False if denied else await self._sees_checks(node, as_dns=True)

    async def _sees_checks(self, node: str, *, as_dns: bool = False) -> bool | None:
        """Return whether the token may read the checks of this node, of which there is always one.

        as_dns: whether to ask without the token.
        None: the name of the node is not known, or Consul's answer does not show it.
        """
        if not node:
            return None
        request = self._codec.question(f"health/node/{quote(node, safe='')}")
        if as_dns:
            request.headers.pop(TOKEN, None)
        listed = await self._asked(request, list)
        return None if listed is None else bool(listed)

    async def _session(self, settings: ItemSettings, node: str) -> Finding:
        """Return the finding about whether the session could be made.

        The check that does not exist comes last, so that Consul checks everything else before it.
        """
        impossible = str(uuid4())
        checks = (*settings.session.service_checks, impossible)
        session = replace(settings.session, service_checks=checks)
        outcome = await self._outcome(CreateSession(*_COMMAND, session))
        if isinstance(outcome, Created):  # this Consul does not validate the checks of a session
            await self._outcome(DestroySession(*_COMMAND, outcome.session))
        return rights.of_session(settings, node, impossible, outcome)

    async def _outcome(self, request: Request) -> Outcome:
        return self._codec.decode(request, await self._exchange(self._codec.encode(request)))

    async def _asked(self, request: requests.PreparedRequest, kind: type) -> Any:
        """Return the JSON of Consul's answer. None: the token may not read it, or it is malformed."""
        response = await self._exchange(request)
        try:
            return json_of(response, kind) if response.status_code == 200 else None
        except MalformedResponse:
            return None

    async def _exchange(self, request: requests.PreparedRequest) -> requests.Response:
        """Send the request, and return Consul's answer. Raises ExchangeFailed."""
        left_s = max(0.0, self._deadline - asyncio.get_running_loop().time())
        return await self._consul.exchange(request, left_s)


def _keys_of(settings: ItemSettings) -> dict[str, str]:
    """Return one key of each kind that the item needs, by the name to show.

    A semaphore needs the key of a contender: it is one that no contender has. An election with fence has a
    record.
    """
    keys = {settings.key: settings.key}
    if settings.fence is not None:
        record = settings.key + TENURE_SUFFIX
        keys[record] = record
    if isinstance(settings, SemaphoreSettings):
        keys[f"{settings.prefix}/SESSION"] = f"{settings.prefix}/{uuid4()}"
    return keys


def impossible_write(key: str) -> list[dict[str, object]]:
    """Return a transaction that Consul refuses after it has checked the rights of the token."""
    return [{"Verb": "cas", "Key": key, "Value": "", "Index": NO_INDEX}]


def _is_local(address: str) -> bool:
    """Return whether this address is one of this machine's, to which a socket can be bound. Sends nothing."""
    try:
        family = socket.AF_INET6 if ip_address(address).version == 6 else socket.AF_INET
        with socket.socket(family, socket.SOCK_DGRAM) as probe:
            probe.bind((address, 0))
    except (ValueError, OSError):
        return False
    return True
