"""The supervisor against `consul lock`: both on one cluster, with equal nodes, faults, terms and children.

Each tool holds a key of its own on node a and has waiters on b and c; then node a is broken. The children are
compared: when two were alive at once, and when none was although Consul held the lock.
"""

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from bench import lives
from bench.lives import Look
from tests.support.consul import BINARY
from tests.system.cluster import election
from tests.system.cluster.cluster import CLIENTS, SERVERS, Cluster, boottime
from tests.system.cluster.consul import HTTP_PORT
from tests.system.cluster.supervised import Supervised

OURS, THEIRS = "consul-supervisor", "consul lock"
BROKEN = CLIENTS[0]
# `consul lock` requests these terms, and no option changes them.
EQUAL_TERMS = {"ttl": "15s", "lock_delay": "15s", "node_checks": ["serfHealth"]}
REST_S = 5.0  # time for every node to renew and read
CUT_S = 60.0
AGENT_DOWN_S = 4.0  # Consul counts a node as failed after some 6 s
AFTERWARDS_S = 60.0  # 2 x ttl + lock_delay is 45 s
LOOK_EVERY_S = 0.2
STAMPER = Path(__file__).with_name("stamper.py")
HEADINGS = ("what happens to the holder's node", "tool", "double holding s", "needless loss s", "nobody s")


@dataclass(frozen=True, slots=True)
class Result:
    """The outcome of one fault for one tool, in seconds; ``nobody_s`` includes the needless loss."""

    fault: str
    tool: str
    double_s: float
    needless_s: float
    nobody_s: float

    @property
    def cells(self) -> tuple[str, ...]:
        """The cells as text, in the order of HEADINGS."""
        return (
            self.fault, self.tool, f"{self.double_s:.1f}", f"{self.needless_s:.1f}", f"{self.nobody_s:.1f}"
        )  # fmt: skip


class Side:
    """One tool on all nodes, in one trial."""

    def __init__(self, cluster: Cluster, tool: str, trial: str) -> None:
        self._cluster = cluster
        self.tool = tool
        name = f"{trial}-{tool.replace(' ', '-')}"
        self._folder = cluster.folder / name
        self._folder.mkdir()
        self._prefix = f"versus/{name}"
        self._stamps = self._folder / "stamps"
        self._stamps.touch()
        self.looks: list[Look] = []
        make = self._ours if tool == OURS else self._theirs
        self.programs = {node: make(node) for node in CLIENTS}

    def _ours(self, node: str) -> Supervised:
        run = {"exec": self._child(node), "stop_timeout": "1s"}
        session = {**EQUAL_TERMS, "name": f"{self._prefix}-{node}"}
        settings = {"versus": {"key": f"{self._prefix}/.lock", "session": session, "run": run}}
        return election.supervisor(self._cluster, node, settings, self._folder)

    def _theirs(self, node: str) -> Supervised:
        address = f"-http-addr=127.0.0.1:{HTTP_PORT}"
        argv = [str(BINARY), "lock", address, "-shell=false", self._prefix, *self._child(node)]
        return Supervised(self._cluster.network.inside(node, argv), self._folder / f"{node}.log", {})

    def _child(self, node: str) -> list[str]:
        return [sys.executable, "-ISs", str(STAMPER), str(self._stamps), node]

    def start(self, *nodes: str) -> None:
        """Start the tool on these nodes."""
        for node in nodes:
            self._cluster.supervise(self.programs[node])

    def look(self) -> None:
        """Record the session that the key shows."""
        session = self._cluster.servers[SERVERS[0]].session_on(f"{self._prefix}/.lock")
        self.looks.append(Look(boottime(), session))

    @property
    def alive(self) -> list[lives.Life]:
        """The lives of all children up to now."""
        return lives.lives(self._stamps.read_text())

    def result(self, fault: str, since: float, until: float) -> Result:
        """Return the figures of this window."""
        within = [
            lives.Life(life.node, life.pid, max(life.begin, since), min(life.end, until))
            for life in self.alive
            if life.end >= since and life.begin <= until
        ]
        nobody_s = sum(end - begin for begin, end in lives.gaps(within))
        return Result(
            fault, self.tool, lives.double_s(within), lives.needless_s(within, self.looks), nobody_s
        )

    def end(self) -> None:
        """Kill the tools, and rename the file of stamps, so that children that outlive the tools end."""
        for program in self.programs.values():
            self._cluster.abandon(program)
        self._stamps.rename(self._stamps.with_suffix(".done"))


class Trial:
    """One fault for both sides.

    name: the fault, for the table.
    wound: the function that breaks the node.
    """

    def __init__(self, cluster: Cluster, number: int, name: str, wound: "Wound") -> None:
        self._cluster = cluster
        self._name = name
        self._wound = wound
        self._sides = [Side(cluster, tool, f"trial-{number}") for tool in (OURS, THEIRS)]

    def run(self) -> list[Result]:
        """Run the fault and return the figures of both tools."""
        try:
            for side in self._sides:
                side.start(BROKEN)
            self._cluster.until(lambda: all(side.alive for side in self._sides), "both hold")
            for side in self._sides:
                side.start(*CLIENTS[1:])
            since = boottime()  # before the fault, so that the children that it ends are seen alive
            self.watch(REST_S)
            self._wound(self)
            self.watch(AFTERWARDS_S)
            until = boottime()
            return [side.result(self._name, since, until) for side in self._sides]
        finally:
            for side in self._sides:
                side.end()

    def watch(self, length_s: float) -> None:
        """Wait, and look at both keys meanwhile."""
        over_at = boottime() + length_s
        while boottime() < over_at:
            for side in self._sides:
                side.look()
            self._cluster.pass_time(LOOK_EVERY_S)

    def cut(self) -> None:
        """Drop the packets between the node and all other nodes for a minute."""
        self._cluster.network.cut(BROKEN)
        self.watch(CUT_S)
        self._cluster.network.heal(BROKEN)

    def restart_agent(self) -> None:
        """Kill the agent with kill -9 and start it again some seconds later."""
        self._cluster.clients[BROKEN].kill()
        self.watch(AGENT_DOWN_S)
        self._cluster.clients[BROKEN].start()

    def kill_tools(self) -> None:
        """Kill the tool alone with kill -9."""
        for side in self._sides:
            side.programs[BROKEN].kill()


Wound = Callable[[Trial], None]
TRIALS: tuple[tuple[str, Wound], ...] = (
    (f"its packets are dropped for {CUT_S:g} s", Trial.cut),
    (f"its agent is killed, and back after {AGENT_DOWN_S:g} s", Trial.restart_agent),
    ("the tool is killed, and back after 1 s", Trial.kill_tools),
)


def compare(cluster: Cluster, say: Callable[[str], None]) -> list[Result]:
    """Run all trials and return their results; ``say`` gets the name of each one as it begins."""
    results: list[Result] = []
    for number, (name, wound) in enumerate(TRIALS, 1):
        say(f"against {THEIRS}: {name}")
        cluster.wait_whole()
        results += Trial(cluster, number, name, wound).run()
    return results


def markdown(results: Sequence[Result]) -> str:
    """Return the table of the documentation."""
    ruler = ("---", "---", "---:", "---:", "---:")
    rows = [HEADINGS, ruler, *(result.cells for result in results)]
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)
