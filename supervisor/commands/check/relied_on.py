"""The settings of Consul's servers and agents that a quick file relies on, each with its price.

``plan`` names those that its block needs, and ``check --connect`` compares them with the agent's own.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass

from supervisor.config.formats.durations import format_duration
from supervisor.config.lease_checks import TTL_MIN_S
from supervisor.core.lease import lease_of
from supervisor.core.settings import ItemSettings

SERF_HEALTH = "serfHealth"
CHANGE_S = 2.8  # of leader, for each raft_multiplier: 14.2 s with 5 and less than 3 s with 1 were measured
LEADER_CHANGE_S = 5 * CHANGE_S  # with Consul's default raft_multiplier


@dataclass(frozen=True, slots=True)
class Gossip:
    """The settings of Consul's ``gossip_lan`` that decide how soon a lost machine is noticed."""

    probe_interval_s: float = 1.0
    suspicion_mult: int = 4

    @property
    def noticed_s(self) -> tuple[float, float]:
        """Within which times Consul counts a lost machine as failed, in a cluster of some ten nodes.

        A probe begins and fails within 2 to 5 intervals, and a suspect is failed ``suspicion_mult`` intervals
        later: ``suspicionTimeout`` of memberlist's util.go. docs/performance.md has the rounds.
        """
        first_s, last_s = ((self.suspicion_mult + more) * self.probe_interval_s for more in (2, 5))
        return first_s, last_s

    def __str__(self) -> str:
        # A probe has to fail within half of its interval, so that other nodes can be asked to probe as well.
        length_s, timeout = self.probe_interval_s, ""
        if length_s < 1.0:
            timeout = f' probe_timeout = "{length_s * 500:g}ms"'
        interval = f"{length_s * 1000:g}ms" if length_s < 1.0 else format_duration(length_s)
        mult = self.suspicion_mult
        return f'gossip_lan {{ probe_interval = "{interval}"{timeout} suspicion_mult = {mult} }}'


DEFAULT_GOSSIP = Gossip()


def noticed_s(settings: ItemSettings, gossip: Gossip = DEFAULT_GOSSIP) -> tuple[float, ...]:
    """Return within which times Consul usually ends the session of a machine that has crashed."""
    longest_s = 2 * (settings.session.ttl_s or math.inf)
    noticed = gossip.noticed_s if SERF_HEALTH in settings.session.node_checks else (longest_s,)
    return tuple(dict.fromkeys(min(each_s, longest_s) for each_s in noticed))


def acts_after_s(settings: ItemSettings, takes_s: float) -> float:
    """Return how long after the end of the session another node usually acts. ``takes_s``: for the fence."""
    key_delay_s, fence = lease_of(settings).key_delay_s, settings.fence
    return key_delay_s if fence is None else max(key_delay_s, fence.after_s) + takes_s


def relied_on(settings: ItemSettings, leader_change_s: float, gossip: Gossip) -> Iterator[str]:
    """Yield a line for each setting outside of the file that a session relies on, then one for its price."""
    ttl_s = settings.session.ttl_s
    if leader_change_s < LEADER_CHANGE_S:
        change = format_duration(leader_change_s)
        yield f"{raft_line(leader_change_s)} on every server, and consul: {{leader_change: {change}}}"
        yield "in this file. The price: a server that is slow for a moment is no longer the leader"
    if ttl_s is not None and ttl_s < TTL_MIN_S:
        yield f'session_ttl_min = "{format_duration(ttl_s)}" on every server. The price: more renewals,'
        yield "and a node that is cut off loses its session sooner"
    if SERF_HEALTH in settings.session.node_checks and gossip != DEFAULT_GOSSIP:
        yield str(gossip)
        quicker = gossip.noticed_s[-1] < DEFAULT_GOSSIP.noticed_s[-1]
        price = ". The price: a machine that is busy for a moment counts as failed" if quicker else ""
        yield f"of every agent and server{price}"
    elif SERF_HEALTH in settings.session.node_checks:
        yield "gossip_lan of every agent and server as it is by default. Faster gossip (probe_interval,"
        yield "suspicion_mult) shortens `usually`. The price: busy machines count as failed"
    if (fence := settings.fence) is not None:
        after, takes = format_duration(fence.after_s), format_duration(fence.hook.timeout_s)
        outage = "" if fence.outage_s is None else f", outage: {format_duration(fence.outage_s)}"
        yield f"fence: {{exclusive: true, after: {after}{outage}}} with a command that takes {takes} at most."
        yield "The price: no other program, and no older supervisor, may contend for the key"


def raft_line(leader_change_s: float) -> str:
    """Return the line of Consul's configuration with which a change of the leader takes no longer."""
    return f"performance {{ raft_multiplier = {max(1, int(leader_change_s / CHANGE_S))} }}"
