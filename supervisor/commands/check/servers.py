"""The findings of ``check --connect`` about Consul's raft and gossip, on which a quick file relies.

A client agent has none of its servers' settings.
"""

from collections.abc import Iterable, Iterator

from supervisor.commands.check.findings import AgentFacts, Finding, Level
from supervisor.commands.check.relied_on import (
    CHANGE_S,
    DEFAULT_GOSSIP,
    LEADER_CHANGE_S,
    SERF_HEALTH,
    Gossip,
    raft_line,
)
from supervisor.config.formats.durations import format_duration
from supervisor.core.settings import ItemSettings

_ON_EVERY = "in the configuration of every"


def of_servers(facts: AgentFacts, leader_change_s: float, items: Iterable[ItemSettings]) -> Iterator[Finding]:
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
