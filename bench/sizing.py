"""Row: how near the formulas of [sizing.md](sizing.md) are to what a real Consul counts.

Two thousand contenders wait on one agent: twenty processes for the same hundred elections, which another
process holds. Two smaller fleets follow. In one, each election has a query of its own, and in the other the
nodes contend for the slots of semaphores. Consul's own metrics count requests and entries of its log. A proxy
counts the bytes of two processes. `1` means that the formula is right.

The load at rest is counted over whole waits of the watches. A start, a hand-over and a crash have a least
number of writes, which the formula names, and at most one more for each race that can be lost. Then Consul's
only server is stopped and started, and no holder may lose. Beside it, a thousand blocking queries show what
each takes of a server, and of a client agent.
"""

import os
import re
import signal
import socket
import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from bench import demand
from bench.contender import Contender, stamping_hooks, supervisor_of
from bench.demand import Load, Node
from bench.figures import Figure
from bench.lab import Lab, Rig, wait_until
from bench.writes import at_rest, written
from supervisor.config import load
from supervisor.core.settings import ItemSettings
from tests.support.consul import HOST, Agent
from tests.support.proxy import Proxy

ROW = "sizing"
LEAST, MOST = 0.8, 1.2
CONFIG = {
    "limits": {"http_max_conns_per_client": 6000},
    "telemetry": {"prometheus_retention_time": "24h", "disable_hostname": True},
}
SETTLE_S, SETTLE_QUICK_S = 65.0, 5.0  # a kept connection that is not needed is closed after a minute
WATCHES, WATCHES_QUICK = 2, 1  # waits of a watch
EVENT_S = 4.0  # a hand-over, the rest of the former holder, and its next session
REST_S = 1.0
DOWN_S = 3.0  # Consul takes some seconds more to start; the holders' room is 21.5 s
AGAIN_S = 10.0  # then each contender has renewed
BLOCKED = 1000
GOROUTINES_MAX, DESCRIPTORS_MAX = 4.0, 1.1
PREFIX = "service/app-"
_METRIC = re.compile(r'^((?:consul|go)_[a-z_A-Z0-9]+(?:\{op="[a-z-]+"\})?) ([0-9.e+]+)$', re.MULTILINE)
_ENTRIES = ("consul_fsm_kvs_count", "consul_fsm_session_count", "consul_txn_apply_count")
_REFUSED = "due to lock-delay"  # in Consul's log: it writes nothing then


@dataclass(frozen=True, slots=True)
class Part:
    """A fleet: one process that holds, and others that wait for the same items.

    then: what breaks in the end.
    """

    name: str
    kind: Literal["elections", "semaphores"]
    items: int
    waiting: int
    then: Callable[["Fleet"], list[Figure]] | None = None

    @property
    def candidates(self) -> int:
        """How many processes contend for each item."""
        return 1 + self.waiting


class Counted:
    """Consul's own counts until now."""

    def __init__(self, agent: Agent) -> None:
        text = agent.call("GET", "/agent/metrics?format=prometheus").text
        self.at = time.monotonic()
        self.refused = agent.log.count(_REFUSED)
        self._values = {name: float(value) for name, value in _METRIC.findall(text)}

    def value(self, *names: str) -> float:
        """Return the sum of the metrics whose names begin so."""
        return sum(value for name, value in self._values.items() if name.startswith(names))

    @property
    def entries(self) -> float:
        """Entries of Consul's log that come from sessions, keys and transactions, lost races included."""
        return self.value(*_ENTRIES) - self.refused


class Fleet:
    """The processes of a part, on an agent of their own. The first one holds all that it can."""

    def __init__(self, rig: Rig, part: Part) -> None:
        self.part = part
        self.rig = rig
        self.agent = rig.agent(persistent=True, config=CONFIG)
        self.names = [f"node-{number}" for number in range(part.candidates)]
        self.proxies: list[Proxy] = []
        self.processes: list[Contender] = []

    def start(self) -> None:
        """Start one process after the other; a proxy stands before the first and the last."""
        part, agent = self.part, self.agent
        for name in self.names:
            url = agent.url
            if name in (self.names[0], self.names[-1]):
                self.proxies.append(self.rig.proxy(agent))
                url = self.proxies[-1].url
            items = {f"app-{number:04}": self._item(name, number) for number in range(part.items)}
            self.processes.append(supervisor_of(self.rig, url, name, items, kind=part.kind))
            self.processes[-1].start()
            count = len(self.processes) * part.items
            wait_until(lambda count=count: len(agent.sessions()) == count, f"{count} sessions")  # type: ignore[misc]
            wait_until(lambda: self.is_held, "all items held")
        at_rest(agent)

    def _item(self, name: str, number: int) -> dict[str, Any]:
        hooks = stamping_hooks(self.rig, name)
        if self.part.kind == "semaphores":
            return {"prefix": f"{PREFIX}{number:04}", "limit": 1, **hooks}
        return {"key": f"{PREFIX}{number:04}/leader", **hooks}

    @property
    def row(self) -> str:
        """The row of the table."""
        return f"{ROW}, {self.part.name}"

    @property
    def settings(self) -> ItemSettings:
        """The settings of each item."""
        return load(self.rig.folder / f"{self.names[0]}.yaml", {}, "bench").items[0]

    def load_of(self, waiting: int) -> Load:
        """Return the load of the process that holds all, and of that many others, by the formulas."""
        holder, waiter = (self.node(held) for held in (1.0, 0.0))
        return demand.total([(1, demand.of_node(holder)), (waiting, demand.of_node(waiter))])

    def node(self, held: float) -> Node:
        """Return a process that holds this share."""
        return Node(self.settings, self.part.items, self.part.candidates, held)

    @property
    def is_held(self) -> bool:
        """Whether each election has a holder, or each semaphore a contender."""
        return len({key.split("/")[1] for key in self.sessions}) == self.part.items

    @property
    def sessions(self) -> dict[str, str]:
        """The session of each key that has one."""
        entries = self.agent.kv_list(PREFIX)
        return {entry["Key"]: entry["Session"] for entry in entries if entry["Session"]}

    @property
    def connections(self) -> int:
        """How many connections to the agent are established."""
        table = Path(f"/proc/{self.agent.pid}/net/tcp").read_text().splitlines()[1:]
        port = f":{self.agent.port:04X}"
        return sum(line.split()[1].endswith(port) and line.split()[3] == "01" for line in table)


def measure(lab: Lab) -> list[Figure]:
    """Measure the three fleets, then blocking queries alone."""
    figures: list[Figure] = []
    for part in PARTS_QUICK if lab.quick else PARTS:
        lab.say(f"{ROW}: {part.name}")
        with lab.rig() as rig:
            fleet = Fleet(rig, part)
            figures += [*_started(fleet), *_resting(fleet, lab), *_handed_over(fleet)]
            figures += part.then(fleet) if part.then else []
    lab.say(f"{ROW}: {BLOCKED} blocking queries")
    with lab.rig() as rig:
        return [*figures, *_blocked(rig)]


def _started(fleet: Fleet) -> list[Figure]:
    before = Counted(fleet.agent)
    fleet.start()
    part = fleet.part
    contenders = part.candidates * part.items
    formula = 2 * contenders if part.kind == "semaphores" else contenders + part.items
    return [_ratio(fleet, "start: writes", Counted(fleet.agent).entries - before.entries, formula)]


def _resting(fleet: Fleet, lab: Lab) -> list[Figure]:
    time.sleep(SETTLE_QUICK_S if lab.quick else SETTLE_S)
    window_s = demand.WATCH_S * (WATCHES_QUICK if lab.quick else WATCHES)
    before, passed = Counted(fleet.agent), _passed(fleet)
    time.sleep(window_s)
    after, passed = Counted(fleet.agent), _passed(fleet) - passed
    took_s = after.at - before.at
    formula, of_two = fleet.load_of(fleet.part.waiting), fleet.load_of(1)

    def a_second(*names: str) -> float:
        return (after.value(*names) - before.value(*names)) / took_s

    gets = formula.reads + formula.watches
    rates = [
        ("renewals", a_second("consul_http_PUT_v1_session_renew___count"), formula.renewals),
        ("reads and watches", a_second("consul_http_GET_v1_kv___count"), gets),
        ("consistent reads and watches", a_second("consul_raft_verify_leader"), formula.consistent),
    ]
    sessions = float(len(fleet.agent.sessions()))
    blocking = after.value("consul_rpc_queries_blocking")
    return [
        *(figure for name, value, by in rates for figure in _both(fleet, f"{name} a second", value, by)),
        *_both(fleet, "bytes a second of two processes", passed / took_s, of_two.bytes),
        _ratio(fleet, "sessions", sessions, formula.sessions),
        _ratio(fleet, "blocking queries", blocking, formula.queries),
        _ratio(fleet, "connections", fleet.connections, formula.connections),
        _plain(fleet, "writes", after.entries - before.entries, limit=0.0),
    ]


def _handed_over(fleet: Fleet) -> list[Figure]:
    """Let the first process step down for the first time, so that no contender has learnt to wait."""
    before = written(fleet.agent)
    fleet.rig.step_down(fleet.names[0], "app-0000", REST_S)
    time.sleep(EVENT_S)
    event = demand.hand_over(fleet.settings, fleet.part.candidates)
    return [
        _within(fleet, "first hand-over: writes", at_rest(fleet.agent) - before, event.writes, event.lost)
    ]


def _crashed(fleet: Fleet) -> list[Figure]:
    """Kill the first process, which holds all items but one, and does not come back."""
    before, held = Counted(fleet.agent), fleet.sessions
    lost = {session for key, session in held.items() if "app-0000" not in key}  # see _handed_over
    os.kill(fleet.processes[0].pid, signal.SIGKILL)
    wait_until(
        lambda: fleet.is_held and not lost & set(fleet.sessions.values()), "all items are held by others"
    )
    at_rest(fleet.agent)
    after, event = Counted(fleet.agent), demand.crash(fleet.settings, fleet.part.candidates)
    waited = fleet.part.items - len(lost)  # its sessions that only waited expire, with an entry each
    writes = (after.entries - before.entries - waited) / len(lost)
    refused = (after.refused - before.refused) / len(lost)
    return [
        # It does not create its next session.
        _within(fleet, "crash: writes for an election", writes, event.writes - 1, event.lost),
        _plain(fleet, "crash: tries that a lock-delay refuses, for an election", refused, fleet.part.waiting),
    ]


def _stopped(fleet: Fleet) -> list[Figure]:
    """Stop Consul for less than the holders' room, and start it again."""
    sessions, held = _ids(fleet), set(fleet.sessions.values())
    mark, began = fleet.rig.stamps.mark(), time.monotonic()
    fleet.agent.stop()
    time.sleep(DOWN_S)
    fleet.agent.start()
    down_s = time.monotonic() - began
    time.sleep(AGAIN_S)
    lost = sessions - _ids(fleet)
    return [
        _plain(fleet, "restart of Consul, s", down_s),
        _plain(fleet, "restart: holders' sessions lost", len(lost & held), 0.0),
        _plain(fleet, "restart: runs of on_lose", len(fleet.rig.stamps.since(mark)), 0.0),
        _plain(fleet, "restart: waiters' sessions created anew", len(lost - held)),
    ]


def _ids(fleet: Fleet) -> set[str]:
    return {session["ID"] for session in fleet.agent.sessions()}


def _blocked(rig: Rig) -> list[Figure]:
    """Send queries that nothing answers to a server, then through a client agent."""
    server = rig.agent(persistent=True, config=CONFIG)
    server.kv_put(PREFIX, b"")
    index = server.call("GET", f"/kv/{PREFIX}").index
    client = rig.agent(servers=server, config=CONFIG)
    figures: list[Figure] = []
    for to, who in ((server, "at a server"), (client, "through a client agent")):
        before = _cost(server), _cost(client)
        query = f"GET /v1/kv/{PREFIX}?index={index}&wait=30s HTTP/1.1\r\nHost: {HOST}\r\n\r\n".encode()
        with ExitStack() as clients:
            for _ in range(BLOCKED):
                connection = clients.enter_context(socket.create_connection((HOST, to.port)))
                connection.sendall(query)
            wait_until(
                lambda: Counted(server).value("consul_rpc_queries_blocking") >= BLOCKED, "all queries wait"
            )
            after = _cost(server), _cost(client)
        for agent, old, new in zip(("server", "client agent"), before, after, strict=True):
            each = [(now - then) / BLOCKED for then, now in zip(old, new, strict=True)]
            if agent == "server" or to is client:
                what = f"a blocking query {who}, on the {agent}"
                figures += [
                    Figure(ROW, f"{what}: goroutines", each[0], "", GOROUTINES_MAX),
                    Figure(ROW, f"{what}: memory", each[1], "kB"),
                    Figure(ROW, f"{what}: descriptors", each[2], "", DESCRIPTORS_MAX),
                ]
        server.kv_put(PREFIX, who.encode())  # answers the queries, whose clients have gone
        index = server.call("GET", f"/kv/{PREFIX}").index
    return figures


def _cost(agent: Agent) -> tuple[float, float, float]:
    """Return goroutines, memory in kB and descriptors of an agent."""
    status = Path(f"/proc/{agent.pid}/status").read_text()
    memory = next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmRSS:"))
    descriptors = sum(1 for _ in Path(f"/proc/{agent.pid}/fd").iterdir())
    return Counted(agent).value("go_goroutines"), memory * 1.024, float(descriptors)


def _passed(fleet: Fleet) -> int:
    return sum(proxy.bytes_passed for proxy in fleet.proxies)


def _both(fleet: Fleet, what: str, value: float, formula: float) -> tuple[Figure, Figure]:
    return _plain(fleet, what, value), _ratio(fleet, what, value, formula)


def _ratio(fleet: Fleet, what: str, value: float, formula: float) -> Figure:
    return Figure(fleet.row, f"{what}, measured / formula", value / formula, "×", MOST, LEAST)


def _within(fleet: Fleet, what: str, value: float, least: float, lost: float) -> Figure:
    return Figure(fleet.row, what, value, "", least + lost, least)


def _plain(fleet: Fleet, what: str, value: float, limit: float | None = None) -> Figure:
    return Figure(fleet.row, what, value, "", limit)


PARTS = (
    Part("2000 waiting, shared queries", "elections", 100, 20, _stopped),
    Part("120 waiting, queries of their own", "elections", 40, 3, _crashed),
    Part("80 contenders of semaphores", "semaphores", 20, 3),
)
PARTS_QUICK = (
    Part("200 waiting, shared queries", "elections", 100, 2, _stopped),
    Part("20 waiting, queries of their own", "elections", 10, 2, _crashed),
    Part("30 contenders of semaphores", "semaphores", 10, 2),
)
