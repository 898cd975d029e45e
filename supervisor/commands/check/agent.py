"""The findings about the agent, the servers of Consul, and what their settings mean to a file.

Among them are the machines that a fence may switch off.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from supervisor.adapters.consul import permissions, versions
from supervisor.adapters.consul.shared.grouping import queries_for
from supervisor.commands.check.findings import Finding, Level
from supervisor.commands.check.relied_on import (
    CHANGE_S,
    DEFAULT_GOSSIP,
    LEADER_CHANGE_S,
    SERF_HEALTH,
    Gossip,
    raft_line,
)
from supervisor.config.formats.durations import format_duration, parse_duration
from supervisor.core.claim.record import SAME_TARGET
from supervisor.core.lock.base import ANSWER_S_MAX
from supervisor.core.outcomes import Outcome, SessionsView, TenureShown
from supervisor.core.settings import ItemSettings, SemaphoreSettings

_ON_EVERY = "in the configuration of every"
OTHERS_EACH = 2  # connections of an item besides its watch: a read, and a renewal or a write
OTHERS_MAX = 56  # of all items together: client.CONCURRENT_MAX in use, and pool.IDLE_MAX kept open


@dataclass(frozen=True, slots=True)
class AgentFacts:
    """The facts that an agent reports about itself in ``/v1/agent/self``. A blank fact is not reported."""

    node: str
    address: str
    version: str
    datacenter: str
    debug: Mapping[str, Any] = field(repr=False)  # the agent's configuration as it runs

    def duration_s(self, name: str) -> float | None:
        """Return this duration of its configuration. None: the agent does not report it."""
        try:
            return parse_duration(_text(self.debug, name))
        except ValueError:
            return None


def facts_of(answer: Mapping[str, Any]) -> AgentFacts:
    parts = map(answer.get, ("Config", "Member", "DebugConfig"))
    config, member, debug = (part if isinstance(part, dict) else {} for part in parts)
    return AgentFacts(
        node=_text(config, "NodeName"),
        address=_text(member, "Addr"),
        version=_text(config, "Version"),
        datacenter=_text(config, "Datacenter"),
        debug=debug,
    )


def _text(part: Mapping[str, Any], name: str) -> str:
    value = part.get(name)
    return value if isinstance(value, str) else ""


def of_leader(leader: str) -> Finding:
    """Return the finding about Consul's leader. ``leader``: its address. Blank: Consul has no leader."""
    if leader:
        return Finding("leader", Level.OK, f"Consul's leader is {leader}")
    text = "Consul has no leader: no lock can be taken or kept"
    return Finding("leader", Level.ERROR, text, "bring back a majority of its servers")


def of_voters(servers: Iterable[object]) -> list[Finding]:
    """Return the finding about servers of Consul that do not vote yet; none if all vote, or nobody knows."""
    found = (each for each in servers if isinstance(each, dict))
    waiting = [_text(each, "Node") for each in found if each.get("Voter") is False]
    if not waiting:
        return []
    text = f"{', '.join(waiting)} of Consul's servers may not vote yet: do not stop another server meanwhile"
    remedy = "wait until all servers vote: column Voter of `consul operator raft list-peers`"
    return [Finding("voters", Level.WARNING, text, remedy)]


def of_no_path(datacenter: str, own: str, why: str) -> Finding:
    """Return the finding about a datacenter to which the agent, of datacenter ``own``, has no path."""
    text = f"Consul cannot reach the datacenter {datacenter}: Consul answers {why}"
    remedy = f"correct consul.datacenter{f', the agent is in {own}' if own else ''}, or leave it out"
    return Finding("datacenter", Level.ERROR, text, remedy)


def of_datacenter(configured: str | None, own: str, items: Collection[ItemSettings]) -> list[Finding]:
    """Return the finding about a configured datacenter that is not the agent's own; none if it is.

    Consul makes no session of this agent's node in another datacenter, so nothing can be held there.
    configured: the datacenter in the configuration. None: the configuration names none.
    own: the datacenter of the agent. Blank: the agent did not report it.
    """
    if configured is None or not own or configured == own:
        return []
    contenders = [settings.name for settings in items if settings.contend]
    if not contenders:
        text = f"keys of the datacenter {configured} are watched through an agent of {own}"
        return [Finding("datacenter", Level.OK, text)]
    text = (
        f"nothing can be held in the datacenter {configured} through an agent of {own}: "
        f"{len(contenders)} items of the file contend, the first is {contenders[0]}"
    )
    remedy = "leave consul.datacenter out, or set consul.address to an agent of that one; observers may stay"
    return [Finding("datacenter", Level.ERROR, text, remedy)]


def of_agent(
    facts: AgentFacts, hostname: str, *, is_local: bool, items: Collection[ItemSettings]
) -> list[Finding]:
    """Return the findings about the agent. ``is_local``: its address is one of this machine's."""
    return [
        _of_version(facts),
        _of_machine(facts, hostname, is_local=is_local),
        _of_leave(facts),
        _of_connections(facts, items),
        *_of_http_timeout(facts),
    ]


def unknown_agent(why: str, denied: bool) -> list[Finding]:
    """Return the finding about an agent that tells no facts. ``denied``: the token lacks the right."""
    text = f"version, machine, leave_on_terminate and connection limit: the agent answers {why}"
    rule = 'to find out, give the token: agent_prefix "" { policy = "read" }' if denied else ""
    return [Finding("agent", Level.UNTOLD, text, permissions.agent_remedy(why) or rule)]


def _of_version(facts: AgentFacts) -> Finding:
    if not (numbers := versions.numbers(facts.version)):
        return Finding("version", Level.UNTOLD, "the agent does not report its version")
    if numbers < versions.OLDEST:
        return Finding("version", Level.ERROR, f"Consul {facts.version} is older than 1.8", "upgrade Consul")
    doubt, remedy = versions.doubt(facts.version)
    level = Level.WARNING if doubt else Level.OK
    return Finding("version", level, f"Consul {facts.version}{doubt and ': '}{doubt}", remedy)


def _of_machine(facts: AgentFacts, hostname: str, *, is_local: bool) -> Finding:
    named = f"{facts.node} ({facts.address})"
    if not facts.node:
        return Finding("machine", Level.UNTOLD, "the agent does not report which node it is")
    if is_local or facts.node.partition(".")[0].lower() == hostname.partition(".")[0].lower():
        return Finding("machine", Level.OK, f"the agent runs on this machine: {named}")
    text = f"the agent runs on another machine, {named}: when that machine fails, this node is cut off"
    remedy = "run an agent on this machine, and set consul.address to it"
    return Finding("machine", Level.WARNING, text, remedy)


def _of_leave(facts: AgentFacts) -> Finding:
    leaves = facts.debug.get("LeaveOnTerm")
    if not isinstance(leaves, bool):
        return Finding("leave", Level.UNTOLD, "the agent does not report whether it leaves on SIGTERM")
    if not leaves:
        text = "a stop of the agent keeps its sessions (leave_on_terminate: false)"
        return Finding("leave", Level.OK, text)
    text = "the agent leaves on SIGTERM and its sessions end, so each restart of the agent is a failover"
    return Finding("leave", Level.WARNING, text, "set leave_on_terminate: false in the agent's configuration")


def _of_connections(facts: AgentFacts, items: Collection[ItemSettings]) -> Finding:
    limit = facts.debug.get("HTTPMaxConnsPerClient")
    if not isinstance(limit, int) or isinstance(limit, bool):
        return Finding("connections", Level.UNTOLD, "the agent does not report http_max_conns_per_client")
    semaphores = sum(isinstance(settings, SemaphoreSettings) for settings in items)
    watches = semaphores + queries_for(len(items) - semaphores, semaphores)
    # Beside that, its tenure record is watched or read, and any server is asked for hints.
    watches += 2 * sum(settings.fence is not None for settings in items)
    needed = watches + min(OTHERS_EACH * len(items), OTHERS_MAX)
    if limit <= 0 or needed <= limit:
        allowed = "no limit" if limit <= 0 else f"{limit} are allowed"
        return Finding("connections", Level.OK, f"up to {needed} connections at a time, {allowed}")
    text = f"{len(items)} items have up to {needed} connections at a time, the agent allows {limit} a client"
    remedy = f"set limits.http_max_conns_per_client to {needed} or more in the agent's configuration"
    return Finding("connections", Level.ERROR if watches >= limit else Level.WARNING, text, remedy)


def _of_http_timeout(facts: AgentFacts) -> list[Finding]:
    """Return the finding about an agent that closes a watch before Consul answers it; none if it does not."""
    timeout_s = facts.duration_s("HTTPWriteTimeout") or 0.0  # 0: none, as before 1.22.4
    if not 0.0 < timeout_s <= ANSWER_S_MAX:
        return []
    after, longest = format_duration(timeout_s), format_duration(ANSWER_S_MAX)
    text = f"the agent closes a request without an answer after {after}, and a watch may wait for {longest}"
    remedy = 'set http_config { write_timeout = "15m" } in the agent\'s configuration'
    return [Finding("timeout", Level.WARNING, text, remedy)]


# --- raft and gossip, on which a quick file relies ------------------------------------------------


def of_servers(facts: AgentFacts, leader_change_s: float, items: Iterable[ItemSettings]) -> Iterator[Finding]:
    """Yield the findings about these settings of Consul. A client agent has none of its servers'."""
    if facts.debug.get("ServerMode") is True:
        yield _of_raft(leader_change_s, facts.duration_s("ConsulRaftHeartbeatTimeout"))
    elif leader_change_s < LEADER_CHANGE_S:
        yield _of_raft(leader_change_s, None)
    if any(SERF_HEALTH in settings.session.node_checks for settings in items if settings.contend):
        yield _of_gossip(facts)


def _of_raft(leader_change_s: float, heartbeat_s: float | None) -> Finding:
    """Compare the file with the server's heartbeat_timeout, which is a second for each raft_multiplier."""
    wanted, everywhere = format_duration(leader_change_s), f"{raft_line(leader_change_s)} {_ON_EVERY} server"
    if heartbeat_s is None:
        text = f"whether a change of Consul's leader takes {wanted} (leader_change): only a server reports it"
        return Finding("raft", Level.UNTOLD, text, f"make sure of {everywhere}")
    takes_s = round(CHANGE_S * heartbeat_s, 1)
    takes = format_duration(takes_s)
    text = f"a change of Consul's leader takes about {takes} by this server's raft_multiplier"
    if takes_s <= leader_change_s:
        return Finding("raft", Level.OK, text)
    remedy = f"set {everywhere}, or consul.leader_change to {takes} in this file"
    return Finding("raft", Level.WARNING, f"{text}, and the file counts on {wanted} (leader_change)", remedy)


def _of_gossip(facts: AgentFacts) -> Finding:
    probe_s = facts.duration_s("GossipLANProbeInterval")
    suspicion = facts.debug.get("GossipLANSuspicionMult")
    if not probe_s or not isinstance(suspicion, int):
        return Finding("gossip", Level.UNTOLD, "the agent does not report its gossip_lan")
    gossip = Gossip(probe_s, suspicion)
    usual = " to ".join(map(format_duration, gossip.noticed_s))
    shown = f"probe_interval {format_duration(probe_s)}, suspicion_mult {suspicion}"
    text = (
        f"serfHealth usually fails {usual} after a crash of the machine, by this agent's gossip_lan ({shown})"
    )
    if gossip.noticed_s[-1] <= DEFAULT_GOSSIP.noticed_s[-1]:
        return Finding("gossip", Level.OK, text)
    later = f"{text}, later than with Consul's defaults"
    return Finding("gossip", Level.WARNING, later, f"set {DEFAULT_GOSSIP} {_ON_EVERY} agent and server")


def of_deregistration(facts: AgentFacts, entry: Mapping[str, Any]) -> list[Finding]:
    """Return the doubt about the agent's own token: has it completed this entry of the agent's node?"""
    node = entry.get("Node") or {}
    if versions.numbers(facts.version) < (1, 15) or node.get("TaggedAddresses"):
        return []
    may = "may not write its node" if node else "is not known, because this one may not read the node"
    text = f"the agent's own token {may}; without that right what it deregisters stays, critical"
    remedy = 'give the agent a token (acl.tokens.agent) with node_prefix "" { policy = "write" }'
    return [Finding("deregistration", Level.WARNING, text, remedy)]


# --- what a fence may switch off -----------------------------------------------------------------


def of_fence(
    items: Collection[ItemSettings], servers: Collection[str], outcome: Outcome, facts: AgentFacts | None
) -> Finding:
    """Return the finding about a fence that may switch off a server of Consul.

    items: the elections with fence.
    servers: the nodes that run a server. Empty: nobody knows.
    outcome: the sessions, by which the nodes that contend are known, beside this one.
    """
    names = {settings.session.name for settings in items}
    listed = outcome.sessions if isinstance(outcome, SessionsView) else ()
    nodes = {each.node for each in listed if each.name in names} | ({facts.node} if facts else set())
    if not servers:
        text = "whether fence may switch off a server of Consul: the token may not see the servers"
        rules = 'service "consul" { policy = "read" } node_prefix "" { policy = "read" }'
        return Finding("fence", Level.UNTOLD, text, f"to find out, give the token: {rules}")
    if shared := sorted(nodes & set(servers)):
        text = f"fence may switch off a server of Consul: {', '.join(shared)} run one, and contend"
        remedy = "contend on nodes without a server, or expect a change of Consul's leader meanwhile"
        return Finding("fence", Level.WARNING, text, remedy)
    return Finding("fence", Level.OK, "no known candidate of an election with fence runs a server of Consul")


def of_target(settings: ItemSettings, outcome: Outcome, node: str | None) -> list[Finding]:
    """Return the warning that another node, by its tenure record, has the target of this one."""
    record = outcome.record if isinstance(outcome, TenureShown) else None
    if record is None or settings.fence is None or record.node == node or record.target is None:
        return []
    if record.target != (settings.fence.target or node):
        return []
    text, _, remedy = SAME_TARGET.format(node=record.name, target=record.target).partition("; ")
    return [Finding("fence", Level.WARNING, text, remedy, settings.name)]
