"""The faults of the cluster: each breaks one thing, waits, and mends it.

A plan is a list of values made from a seed: equal seeds give equal faults of equal lengths in an equal order.
Which node is "the holder" is known only when the fault begins.
"""

import random
import signal
import time
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import islice
from socket import AF_UNIX, socket

from supervisor.adapters.runtime.clock import boottime
from tests.support.supervisor import until
from tests.support.tenures import KILLED
from tests.system.cluster import election
from tests.system.cluster.cluster import CLIENTS, Cluster
from tests.system.cluster.consul import HTTP_PORT, ConsulNode
from tests.system.cluster.judge import LEADER_RESTARTED
from tests.system.cluster.supervised import Supervised

AT_HOLDER_SHARE = 0.75
LONG_SHARE = 0.5
BRIEF_S = 2.5  # mostly ridden out, although the session may expire 2 x ttl after its last renewal
LONG_S = 15.0  # longer than a failover, so that another node takes over while the fault lasts
AGENT_DOWN_S = 1.0
ACCEPTED = '"event": "reloaded"'
LONGER_OUTAGE_S = 900.0
# For so long a supervisor lives on after it has accepted a file: it writes the record, hears the answer,
# writes its journal, and believes. None: it is killed while it reads the file.
KILLED_AFTER_S = (None, 0.0, 0.002, 0.005, 0.01, 0.015, 0.02, 0.03, 0.04, 0.06, 0.1, 0.2, 0.5, 1.0, 2.0)
STOPPED_S = (15.0, 40.0)  # for how long no server runs: more than the lock-delay, less than `outage`


@dataclass(frozen=True, slots=True)
class Fault:
    """One fault.

    node: the node that is hit.
    at_holder: whether the holder's node is hit instead.
    long: whether the fault lasts longer than a failover.
    """

    kind: str
    at_holder: bool
    node: str
    long: bool

    @property
    def length_s(self) -> float:
        return LONG_S if self.long else BRIEF_S


@dataclass(slots=True)
class FaultTargets:
    """The parts of the cluster that a fault may break; ``note`` writes a line that the judge reads."""

    cluster: Cluster
    supervisors: dict[str, Supervised]
    figures: election.Figures
    note: Callable[[str, str, float | None], None]
    elections_s: float = 0.0  # how long Consul had no leader in this fault
    frozen: str = ""  # the server that stood still
    agent_hangs: bool = False  # whether the holder's agent asked a server that stood still


def plan(seed: int, count: int, kinds: Collection[str] = ()) -> list[Fault]:
    """Return ``count`` faults of these kinds, or of KINDS; every kind comes once before one comes twice.

    A longer plan of a seed begins with the shorter one.
    """
    return list(islice(_endless(random.Random(seed), kinds or KINDS), count))


def _endless(chance: random.Random, kinds: Collection[str]) -> Iterator[Fault]:
    while True:
        for kind in chance.sample(sorted(kinds), len(kinds)):
            at_holder, long = chance.random() < AT_HOLDER_SHARE, chance.random() < LONG_SHARE
            yield Fault(kind, at_holder, chance.choice(CLIENTS), long)


def partition(
    scene: FaultTargets, node: str, fault: Fault, *, sent: bool = True, received: bool = True
) -> None:
    """Drop the packets that a node sends to other nodes, or receives from them, or both."""
    scene.cluster.network.cut(node, sent=sent, received=received)
    scene.cluster.pass_time(fault.length_s)
    scene.cluster.network.heal(node)


def loopback(scene: FaultTargets, node: str, fault: Fault) -> None:
    """Drop the packets between a supervisor and its agent, both ways."""
    scene.cluster.network.cut_loopback(node, HTTP_PORT)
    scene.cluster.pass_time(fault.length_s)
    scene.cluster.network.heal(node)


def agent_kill(scene: FaultTargets, node: str, fault: Fault) -> None:
    """Kill a client agent with kill -9, and start it again."""
    scene.cluster.clients[node].kill()
    scene.cluster.pass_time(fault.length_s)
    scene.cluster.clients[node].start()


def agent_leave(scene: FaultTargets, node: str, fault: Fault) -> None:
    """End a client agent with SIGTERM, so that it leaves the cluster, and start it again."""
    scene.cluster.clients[node].stop()
    scene.cluster.pass_time(AGENT_DOWN_S)
    scene.cluster.clients[node].start()


def agent_freeze(scene: FaultTargets, node: str, fault: Fault) -> None:
    """Freeze a client agent with SIGSTOP for longer than the lease."""
    scene.cluster.clients[node].signal(signal.SIGSTOP)
    scene.cluster.pass_time(LONG_S)
    scene.cluster.clients[node].signal(signal.SIGCONT)


def server_kill(scene: FaultTargets, node: str, fault: Fault) -> None:
    """Kill the leading server with kill -9; start it again when another leads, or at once."""
    _end_the_leader(scene, fault, ConsulNode.kill)


def server_restart(scene: FaultTargets, node: str, fault: Fault) -> None:
    """End the leading server with SIGTERM; start it again when another leads, or at once."""
    _end_the_leader(scene, fault, ConsulNode.stop)


def _end_the_leader(scene: FaultTargets, fault: Fault, end: Callable[[ConsulNode], object]) -> None:
    leading = scene.cluster.leading_server()
    began_at = boottime()
    end(leading)
    if not fault.long:
        scene.cluster.pass_time(AGENT_DOWN_S)
        restarted_at = boottime()
        leading.start()
    _await_leader(scene, began_at)
    if fault.long:
        restarted_at = boottime()
        leading.start()
    _note_if_it_leads(scene, leading.name, restarted_at)


def _await_leader(scene: FaultTargets, began_at: float, frozen: ConsulNode | None = None) -> None:
    """Wait until a server knows itself to be the leader; no server that only follows is asked for more."""
    others = [server for server in scene.cluster.servers.values() if server is not frozen]
    scene.cluster.until(lambda: any(each.leader_address == each.address for each in others), "a server leads")
    scene.elections_s = boottime() - began_at


def server_freeze(scene: FaultTargets, node: str, fault: Fault) -> None:
    """Freeze the leading server with SIGSTOP until another leads, and for the length of the fault.

    node: the holder. If its agent asks the frozen server, it stays silent until gossip notices the freeze.
    """
    frozen = scene.cluster.leading_server()
    began_at = boottime()
    frozen.signal(signal.SIGSTOP)
    _await_leader(scene, began_at, frozen)
    scene.frozen = frozen.name
    scene.agent_hangs = not scene.cluster.clients[node].answers
    scene.cluster.pass_time(fault.length_s)
    frozen.signal(signal.SIGCONT)


def servers_restart(scene: FaultTargets, node: str, fault: Fault) -> None:
    """End each server with SIGTERM and start it again, one lock-delay apart."""
    for name, server in scene.cluster.servers.items():
        led = scene.cluster.leading_server().name == name
        began_at = boottime()
        server.stop()
        restarted_at = boottime()
        server.start()
        scene.cluster.until(lambda: scene.cluster.server.answers, "a server answers")
        if led:
            scene.elections_s = max(scene.elections_s, boottime() - began_at)
        _note_if_it_leads(scene, name, restarted_at)


def servers_stopped(
    scene: FaultTargets, node: str, fault: Fault, meanwhile: Callable[[], object] = lambda: None
) -> None:
    """Kill all servers, and start them again after a while."""
    began_at = boottime()
    length_s = STOPPED_S[fault.long]
    for server in scene.cluster.servers.values():
        server.kill()
    scene.cluster.pass_time(length_s / 2)
    meanwhile()
    scene.cluster.pass_time(length_s / 2)
    for server in scene.cluster.servers.values():
        server.start()
    _await_leader(scene, began_at)


def servers_stopped_kill(scene: FaultTargets, node: str, fault: Fault) -> None:
    """Kill all servers, and then the supervisor of the holder, which starts again in the silence."""
    servers_stopped(scene, node, fault, lambda: _kill(scene, node))
    scene.cluster.until(lambda: scene.supervisors[node].running, "the supervisor is back")


def servers_stopped_cut(scene: FaultTargets, node: str, fault: Fault) -> None:
    """Kill all servers, and cut off a node, which stays so when they are back."""
    servers_stopped(scene, node, fault, lambda: scene.cluster.network.cut(node))
    scene.cluster.pass_time(LONG_S)
    scene.cluster.network.heal(node)


def _note_if_it_leads(scene: FaultTargets, name: str, restarted_at: float) -> None:
    """Wait until the lock-delays that a restarted server found in its log are over; note it if it leads."""
    server = scene.cluster.servers[name]
    scene.cluster.until(lambda: server.answers, f"{name} is back")
    if scene.cluster.leading_server() is server:
        scene.note(name, LEADER_RESTARTED, restarted_at)
    scene.cluster.pass_time(scene.figures.lock_delay_s)


def supervisor_kill(scene: FaultTargets, node: str, fault: Fault) -> None:
    """Kill a supervisor with kill -9; it is started again a second later."""
    _kill(scene, node)
    scene.cluster.until(lambda: scene.supervisors[node].running, "the supervisor is back")
    scene.cluster.pass_time(scene.figures.failover_s if fault.long else BRIEF_S)


def supervisor_kill_cut(scene: FaultTargets, node: str, fault: Fault) -> None:
    """Kill a supervisor whose node has just been cut off, so that it restarts beside a silent Consul."""
    scene.cluster.network.cut(node)
    _kill(scene, node)
    scene.cluster.pass_time(fault.length_s)
    scene.cluster.network.heal(node)


def _kill(scene: FaultTargets, node: str) -> None:
    scene.supervisors[node].kill()
    scene.note(node, KILLED, None)


def reload_kill(scene: FaultTargets, node: str, fault: Fault) -> None:
    """Take `outage` out of all files at once, or put a longer one in, and kill a supervisor meanwhile."""
    changes = [(after_s, outage_s) for after_s in KILLED_AFTER_S for outage_s in (None, LONGER_OUTAGE_S)]
    for after_s, outage_s in (*changes, (None, None), (None, election.OUTAGE_S)):
        for each in scene.supervisors:
            scene.cluster.until(partial(_listens, scene, each), f"the supervisor of {each} listens")
            settings = election.settings(each, scene.cluster.folder / "records", False, True, outage_s)
            election.write(scene.cluster.folder / f"{each}-supervisor", {election.NAME: settings})
        scene.cluster.pass_time(
            scene.figures.ttl_s
        )  # in which the supervisor that is back renews its session
        accepted = scene.supervisors[node].log.count(ACCEPTED)
        for supervisor in scene.supervisors.values():
            supervisor.signal(signal.SIGHUP)
        if after_s is not None:
            until(partial(_has_accepted, scene, node, accepted + 1), f"{node} accepts the file")
            time.sleep(after_s)
        _kill(scene, node)


def _has_accepted(scene: FaultTargets, node: str, files: int) -> bool:
    return scene.supervisors[node].log.count(ACCEPTED) >= files


def _listens(scene: FaultTargets, node: str) -> bool:
    with socket(AF_UNIX) as client:
        path = scene.cluster.folder / f"{node}-supervisor" / "control.sock"
        return scene.supervisors[node].running and client.connect_ex(str(path)) == 0


def supervisor_freeze(scene: FaultTargets, node: str, fault: Fault) -> None:
    """Freeze a supervisor with SIGSTOP for as long as the lease allows."""
    scene.supervisors[node].signal(signal.SIGSTOP)
    scene.cluster.pass_time(scene.figures.silence_s)
    scene.supervisors[node].signal(signal.SIGCONT)


Kind = Callable[[FaultTargets, str, Fault], None]


def _named(*kinds: Kind) -> dict[str, Kind]:
    return {kind.__name__.replace("_", "-"): kind for kind in kinds}


KINDS = _named(
    *(partition, loopback, agent_kill, agent_leave, agent_freeze, server_kill),
    *(servers_restart, supervisor_kill, supervisor_kill_cut, supervisor_freeze),
) | {"partition-out": partial(partition, received=False), "partition-in": partial(partition, sent=False)}
LEADER_KINDS = _named(server_kill, server_restart, server_freeze)
OUTAGE_KINDS = KINDS | _named(servers_stopped, servers_stopped_kill, servers_stopped_cut, reload_kill)
ALL_KINDS = OUTAGE_KINDS | LEADER_KINDS
SERVER_KINDS = frozenset({*LEADER_KINDS, "servers-restart", "servers-stopped", "servers-stopped-kill"})
