"""The settings of Consul's servers and agents that a quick file relies on, each with its price.

``plan`` names those that its block needs. ``check --connect`` compares them with what the agent reports of
itself. A client agent has none of its servers' settings.
"""

from collections.abc import Iterable, Iterator

from supervisor.check.findings import AgentFacts, Finding, Level
from supervisor.config.lease_checks import TTL_MIN_S
from supervisor.core.settings import ItemSettings
from supervisor.formats.durations import format_duration, parse_duration

SERF_HEALTH = "serfHealth"
SERF_S = (6.0, 9.0)  # within which Consul counts a node as failed: docs/performance.md has the rounds
CHANGE_S = 2.8  # of leader, for each raft_multiplier: 14.2 s with 5 and less than 3 s with 1 were measured
LEADER_CHANGE_S = 5 * CHANGE_S  # with Consul's default raft_multiplier
PROBE_INTERVAL_S, SUSPICION_MULT = 1.0, 4  # Consul's defaults of gossip_lan
_ON_EVERY = "in the configuration of every"


def relied_on(settings: ItemSettings, leader_change_s: float) -> Iterator[str]:
    """Yield a line for each setting outside of the file that a session relies on, then one for its price."""
    ttl_s = settings.session.ttl_s
    if leader_change_s < LEADER_CHANGE_S:
        change = format_duration(leader_change_s)
        yield f"{_raft(leader_change_s)} on every server, and consul: {{leader_change: {change}}}"
        yield "in this file. The price: a server that is slow for a moment is no longer the leader"
    if ttl_s is not None and ttl_s < TTL_MIN_S:
        yield f'session_ttl_min = "{format_duration(ttl_s)}" on every server. The price: more renewals,'
        yield "and a node that is cut off loses its session sooner"
    if SERF_HEALTH in settings.session.node_checks:
        yield "gossip_lan of every agent and server as it is by default. Faster gossip (probe_interval,"
        yield "suspicion_mult) shortens `usually`. The price: busy machines count as failed"


def of_servers(facts: AgentFacts, leader_change_s: float, items: Iterable[ItemSettings]) -> Iterator[Finding]:
    """Yield the findings about what the file takes for granted of Consul's raft and gossip."""
    if facts.debug.get("ServerMode") is True:
        yield _of_raft(leader_change_s, _duration_s(facts, "ConsulRaftHeartbeatTimeout"))
    elif leader_change_s < LEADER_CHANGE_S:
        yield _of_raft(leader_change_s, None)
    if any(SERF_HEALTH in settings.session.node_checks for settings in items if settings.contend):
        yield _of_gossip(facts)


def _of_raft(leader_change_s: float, heartbeat_s: float | None) -> Finding:
    """Compare the file with the server's heartbeat_timeout, which is a second for each raft_multiplier."""
    wanted, everywhere = format_duration(leader_change_s), f"{_raft(leader_change_s)} {_ON_EVERY} server"
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
    probe_s = _duration_s(facts, "GossipLANProbeInterval")
    suspicion = facts.debug.get("GossipLANSuspicionMult")
    if probe_s is None or not isinstance(suspicion, int):
        return Finding("gossip", Level.UNTOLD, "the agent does not report its gossip_lan")
    usual = " to ".join(map(format_duration, SERF_S))
    shown = f"probe_interval {format_duration(probe_s)}, suspicion_mult {suspicion}"
    if probe_s <= PROBE_INTERVAL_S and suspicion <= SUSPICION_MULT:
        return Finding("gossip", Level.OK, f"serfHealth usually fails within {usual} or sooner ({shown})")
    default = f'probe_interval = "{format_duration(PROBE_INTERVAL_S)}" suspicion_mult = {SUSPICION_MULT}'
    text = f"serfHealth fails later than the usual {usual} after a crash ({shown})"
    remedy = f"set gossip_lan {{ {default} }} {_ON_EVERY} agent and server"
    return Finding("gossip", Level.WARNING, text, remedy)


def _raft(leader_change_s: float) -> str:
    """Return the line of Consul's configuration with which a change of the leader takes no longer."""
    return f"performance {{ raft_multiplier = {max(1, int(leader_change_s / CHANGE_S))} }}"


def _duration_s(facts: AgentFacts, name: str) -> float | None:
    value = facts.debug.get(name)
    try:
        return parse_duration(value) if isinstance(value, str) else None
    except ValueError:
        return None
