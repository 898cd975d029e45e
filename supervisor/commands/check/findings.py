"""The meaning of Consul's answers to ``check --connect``, as one finding for each thing that must be right.

A finding says what is the case, and the remedy when something is wrong. It never holds the token.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any

from supervisor.adapters.consul import permissions, versions
from supervisor.adapters.consul.endpoints import NODE, READS_SESSIONS
from supervisor.adapters.consul.shared.grouping import queries_for
from supervisor.commands.check.relied_on import (
    CHANGE_S,
    DEFAULT_GOSSIP,
    LEADER_CHANGE_S,
    SERF_HEALTH,
    Gossip,
    raft_line,
)
from supervisor.config.formats import slot_record
from supervisor.config.formats.durations import format_duration, parse_duration
from supervisor.core.claim.record import SAME_TARGET
from supervisor.core.lock.base import ANSWER_S_MAX
from supervisor.core.outcomes import (
    Created,
    Denied,
    Ineligible,
    KeyView,
    Outcome,
    Refused,
    SessionsView,
    TenureShown,
)
from supervisor.core.settings import ItemSettings, SemaphoreSettings

_ON_EVERY = "in the configuration of every"
OTHERS_EACH = 2  # connections of an item besides its watch: a read, and a renewal or a write
MAKES_SESSION = "may make its session"
REPORTS_FILTERED = (1, 11)  # the first version that reports that a list is incomplete
OTHERS_MAX = 56  # of all items together: client.CONCURRENT_MAX in use, and pool.IDLE_MAX kept open


class Level(StrEnum):
    """The grade of a finding. UNTOLD: Consul's answer does not show it."""

    OK = "ok"
    WARNING = "warning"
    UNTOLD = "cannot tell"
    ERROR = "error"


@dataclass(frozen=True, slots=True)
class Finding:
    """One finding."""

    what: str  # the thing that was checked, by its name in docs/commands.md
    level: Level
    text: str  # the fact that was found
    remedy: str = ""  # what to do. Blank: nothing
    item: str = ""  # the election or semaphore. Blank: the finding is about the agent or Consul


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


# --- the agent -----------------------------------------------------------------------------------


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
    watches += sum(settings.fence is not None for settings in items)  # a holder watches its tenure record
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


# --- rights --------------------------------------------------------------------------------------


def of_token(why: str) -> Finding:
    remedy = "put a token that exists into token_file (or token, or CONSUL_HTTP_TOKEN)"
    return Finding("token", Level.ERROR, f"Consul refuses the token: {why}", remedy)


def of_read(settings: ItemSettings, key: str, outcome: Outcome) -> Finding:
    if isinstance(outcome, Denied):
        said = _said(outcome)
        text, rule = f"may not read {key}: Consul answers {said}", _key_rule(settings, key)
        return _right(settings, Level.ERROR, text, permissions.agent_remedy(said) or rule)
    if not isinstance(outcome, KeyView):
        return _unclear(settings, f"read {key}", _said(outcome))
    is_own = key == settings.key  # and not its tenure record, or the key of a contender
    if is_own and settings.kind == "semaphore" and outcome.present:
        try:
            slot_record.decoded(outcome.value)
        except slot_record.InvalidRecord as why:
            remedy = "give the semaphore another prefix, or delete this key"
            return _right(settings, Level.ERROR, f"{key} is not the record of a semaphore: {why}", remedy)
    elif is_own and settings.kind == "election":
        remedy = "give the election another key, or delete this one"
        if outcome.is_foreign:
            text = f"belongs to another program: its flags are {outcome.foreign_flags}, not a lock's"
            return _right(settings, Level.ERROR, f"{key} {text}", remedy)
        if outcome.was_never_locked:
            text = f"has a value of {len(outcome.value)} bytes, and was never locked: a lock writes over it"
            return _right(settings, Level.WARNING, f"{key} {text}", remedy)
    return _right(settings, Level.OK, f"may read {key}")


def of_write(settings: ItemSettings, key: str, why: str, rule: str = "") -> Finding:
    """Return the finding about the impossible write of ``key``, to which Consul answered ``why``.

    rule: the remedy if the token may not. Blank: the rule of the item's keys.
    """
    if why.startswith("409") and "index is stale" in why:
        return _right(settings, Level.OK, f"may write {key}")
    if why.startswith("403") or (why.startswith("409") and permissions.PERMISSION_DENIED in why):
        why = why.removeprefix("409 ")  # of the transaction, where the log has the 403 of a usual write
        text, rule = f"may not write {key}: Consul answers {why}", rule or _key_rule(settings, key)
        return _right(settings, Level.ERROR, text, permissions.agent_remedy(why) or rule)
    return _unclear(settings, f"write {key}", why)


def of_session(settings: ItemSettings, node: str, impossible: str, outcome: Outcome) -> Finding:
    """Return the finding about a session that cannot be made, because no check has the id ``impossible``."""
    said = _said(outcome)
    if isinstance(outcome, Created) or (isinstance(outcome, Refused) and impossible in said):
        return _right(settings, Level.OK, MAKES_SESSION)
    if isinstance(outcome, Denied):
        rule = f'give the token: session "{node or NODE}" {{ policy = "write" }}'
        text = f"may not make its session: Consul answers {said}"
        return _right(settings, Level.ERROR, text, permissions.agent_remedy(said) or rule)
    if isinstance(outcome, Refused):
        remedy = "change ttl or the checks of its session, or session_ttl_min of Consul's servers"
        text = f"cannot make its session: Consul answers {said}"
        return _right(settings, Level.ERROR, text, permissions.agent_remedy(said) or remedy)
    if isinstance(outcome, Ineligible):
        text = f"cannot make its session now: Consul answers {said}"
        return _right(settings, Level.WARNING, text, "nothing: the node contends once the check passes")
    return _unclear(settings, "make its session", said)


def of_maintenance(settings: ItemSettings, node: str, sees_checks: bool | None) -> Finding:
    """Return the finding about the maintenance mode, which Consul may hide. None: nobody knows."""
    if sees_checks:
        return _right(settings, Level.OK, "may see the maintenance mode")
    rule = f'give the token: node "{node}" {{ policy = "read" }}'
    if sees_checks is None:
        text = "whether it may see the maintenance mode"
        if not node:
            text += ": the agent does not report which node it is"
            rule = 'to find out, give the token: agent_prefix "" { policy = "read" }'
        return _right(settings, Level.UNTOLD, text, rule)
    text = "may not see the maintenance mode: Consul hides the checks of this node"
    return _right(settings, Level.ERROR, text, rule)


def of_dns(settings: ItemSettings, sees: bool | None) -> Finding:
    """Return whether DNS, which asks with the agent's own token, may name the holder. None: nobody knows."""
    assert settings.service is not None
    name = settings.service.name
    rules = f'service "{name}" {{ policy = "read" }} node_prefix "" {{ policy = "read" }}'
    remedy = f"if clients use DNS, give the agent's default token, or the anonymous one: {rules}"
    if sees is None:
        return _right(settings, Level.UNTOLD, f"whether DNS may name {name}", remedy)
    level, may = (Level.OK, "may") if sees else (Level.WARNING, "may not")
    return _right(settings, level, f"DNS {may} name {name}", "" if sees else remedy)


def of_sessions(outcome: Outcome, holders: Collection[str], facts: AgentFacts | None) -> Finding:
    """Return the finding about whether the token may list the sessions of all nodes, as some commands do.

    Consul leaves out a session that the token may not read. Only since 1.11 it reports that. No level is an
    error, because the daemon lists no sessions.
    holders: the sessions that hold a key of the configuration.
    facts: None: the agent did not report them.
    """
    rule, answers = f"give the token: {READS_SESSIONS}", f"Consul answers {_said(outcome)}"
    to_see = f"to see all nodes in members and sessions, {rule}"
    if isinstance(outcome, Denied):
        return Finding("sessions", Level.UNTOLD, f"may not list sessions: {answers}", to_see)
    if not isinstance(outcome, SessionsView):
        return Finding("sessions", Level.UNTOLD, f"whether it may list sessions: {answers}")
    shown = {session.id for session in outcome.sessions}
    if outcome.filtered or not set(holders) <= shown:
        text = "members and sessions do not see all nodes: Consul leaves out what the token may not read"
        return Finding("sessions", Level.UNTOLD, text, to_see)
    reports = facts is not None and versions.numbers(facts.version) >= REPORTS_FILTERED and bool(shown)
    if reports or (facts is not None and facts.debug.get("ACLsEnabled") is False):
        return Finding("sessions", Level.OK, "members and sessions see all nodes")
    text = "whether members and sessions see all nodes: Consul does not report which sessions it leaves out"
    missing = f"nothing, unless a node is missing there: then the token lacks {READS_SESSIONS}"
    return Finding("sessions", Level.UNTOLD, text, missing)


def of_history(prefix: str, read: Outcome, why: str) -> Finding:
    """Return the finding about the keys below ``prefix``. No level is an error: no election depends on it.

    why: Consul's answer to an impossible write of such a key.
    """
    rule = f'give the token: key_prefix "{prefix}" {{ policy = "write" }}'
    if isinstance(read, KeyView) and why.startswith("409") and "index is stale" in why:
        return Finding("history", Level.OK, f"may read and write below {prefix}")
    if isinstance(read, Denied) or permissions.PERMISSION_DENIED in why:
        text = f"the history of elections is not kept: the token may not write below {prefix}"
        return Finding("history", Level.WARNING, text, permissions.agent_remedy(why) or rule)
    answers = why if isinstance(read, KeyView) else _said(read)
    return Finding("history", Level.UNTOLD, f"whether it may write below {prefix}: Consul answers {answers}")


def of_orders(place: str, read: Outcome, *, lists: bool) -> Finding:
    """Return the finding about orders for the whole fleet, which no election depends on.

    lists: whether Consul gives the list; with ``enable_key_list_policy`` that is a right of its own.
    """
    if isinstance(read, KeyView) and lists:
        return Finding("orders", Level.OK, f"may read {place}")
    if isinstance(read, KeyView | Denied):
        rule = f'give the token: key_prefix "{place}" {{ policy = "list" }}'
        text = f"may not list {place}, so this node follows no orders"
        return Finding("orders", Level.WARNING, text, rule)
    return Finding("orders", Level.UNTOLD, f"whether it may read {place}: Consul answers {_said(read)}")


def of_fleet(service: str, said: str, present: Sequence[object] | str) -> Iterator[Finding]:
    """Yield the findings about ``fleet``; neither is an error, because no election depends on it.

    said: Consul's answer to an impossible write of the service.
    present: the daemons that the token sees, or why it sees none or not all.
    """
    if "index is stale" in said:
        yield Finding("fleet", Level.OK, f"may register this node as the service {service}")
    else:
        rule = f'give the token: service "{service}" {{ policy = "write" }}'
        text = f"may not write the service {service}, so other nodes do not see this one: {said}"
        yield Finding("fleet", Level.WARNING, text, permissions.agent_remedy(said) or rule)
    if isinstance(present, str):
        yield Finding("fleet", Level.UNTOLD, f"whether members sees all nodes: {present}")


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


def together(found: Sequence[Finding]) -> list[Finding]:
    """Return the findings about one item: those of level OK joined to one, then each of another level."""
    right = [one for one in found if one.level is Level.OK]
    wrong = [one for one in found if one.level is not Level.OK]
    lines = [replace(right[0], text=", ".join(one.text for one in right))] if right else []
    return lines + wrong


def _unclear(settings: ItemSettings, what: str, said: str) -> Finding:
    """Return the finding about an answer that is neither yes nor no; a 400 is a fault of the request."""
    if not said.startswith("400"):
        return _right(settings, Level.UNTOLD, f"whether it may {what}: Consul answers {said}")
    remedy = permissions.agent_remedy(said) or "change what Consul names"
    return _right(settings, Level.ERROR, f"cannot {what}: Consul answers {said}", remedy)


def _right(settings: ItemSettings, level: Level, text: str, remedy: str = "") -> Finding:
    return Finding("rights", level, text, remedy, settings.name)


def _key_rule(settings: ItemSettings, key: str) -> str:
    access = "write" if settings.contend else "list" if settings.kind == "semaphore" else "read"
    if isinstance(settings, SemaphoreSettings):
        return f'give the token: key_prefix "{settings.prefix}/" {{ policy = "{access}" }}'
    return f'give the token: key "{key}" {{ policy = "{access}" }}'


def _said(outcome: Outcome) -> str:
    """Return the text of Consul's answer, without a remedy, because each finding has its own remedy."""
    said = str(getattr(outcome, "said", "") or getattr(outcome, "why", outcome))
    return said.removesuffix(f": {permissions.agent_remedy(said)}")
