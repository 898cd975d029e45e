"""Row: how much two hundred clients and five hundred idle connections delay hand-overs and renewals.

Two supervisors hand one election back and forth by `step-down`. One of them also holds twenty other
elections and listens over HTTP. Quiet and loaded rounds take turns. In a loaded round the clients
together request its whole status two hundred times a second, and the idle connections are open.
A hand-over is timed in both directions, from the end of the old on_lose to the first instruction of the
next on_acquire. A renewal of the twenty counts by how much later it reaches Consul than its session's
pace. Consul's own log has that time, so that nothing stands in between.
"""

import socket
import statistics
import time
from contextlib import ExitStack
from dataclasses import dataclass, field

from bench.agent_log import LOGGED, Window, late_ms, renewals
from bench.asker import Asked
from bench.contender import Contender, stamping_hooks, supervisor_of
from bench.figures import Figure, median_and_p95, p95
from bench.lab import Lab, Rig, wait_until
from tests.support.consul import HOST, Agent, free_ports

LIMIT = 1.3  # times the quiet rounds
A_SECOND = 200
IDLE = 500
OTHERS = 20
TTL_S = 10
ROUNDS, ROUNDS_QUICK = 9, 1  # of each kind; the loaded rounds together take three times half a minute
ROUND_S, ROUND_QUICK_S = 10.0, 8.0  # short, so that other work of this machine meets both kinds
REST_S = 0.1  # of the former holder, which then waits again
SETTLE_S = 0.4  # so that the waiter's watch runs and all else is done
KEY, OTHER_KEYS = "bench/status/shared", "bench/status/others/"
LOADED, OTHER = "left", "right"
ROW = f"status, {A_SECOND} a second"


@dataclass(eq=False, slots=True)
class Side:
    """All rounds of one kind."""

    handed_ms: list[float] = field(default_factory=list)
    late_ms: list[float] = field(default_factory=list)
    windows: list[Window] = field(default_factory=list)
    asked: list[Asked] = field(default_factory=list)
    cpu_s: float = 0.0

    @property
    def seconds(self) -> float:
        """The length of all rounds together."""
        return sum(end - begin for begin, end in self.windows)


def measure(lab: Lab) -> list[Figure]:
    """Measure quiet and loaded rounds in turn, on one agent with the same two supervisors."""
    lab.say(ROW)
    quiet, loaded = Side(), Side()
    with lab.rig() as rig:
        agent = rig.agent(config=LOGGED)
        (port,) = free_ports(1)
        supervisor = _supervisors(rig, agent, port)
        for turn in range(lab.samples(ROUNDS, ROUNDS_QUICK)):
            for side in (quiet, loaded) if turn % 2 else (loaded, quiet):
                with ExitStack() as clients:
                    if side is loaded:
                        _connect_idle(clients, port)
                        asker = clients.enter_context(rig.asker(port, "/v1/status", A_SECOND))
                    time.sleep(SETTLE_S)
                    _round(lab, rig, agent, supervisor, side)
                    if side is loaded:
                        side.asked.append(asker.finish())
        sessions = {entry["Session"] for entry in agent.kv_list(OTHER_KEYS)}
        times = renewals(agent.log, sessions)
        for side in (quiet, loaded):
            side.late_ms = late_ms(times, side.windows)
    return _figures(quiet, loaded)


def _supervisors(rig: Rig, agent: Agent, port: int) -> Contender:
    """Start both supervisors, and return the one with the clients, which has won all elections."""
    session = {"session": {"ttl": f"{TTL_S}s"}}
    shared = {name: {"key": KEY, **session, **stamping_hooks(rig, name)} for name in (LOADED, OTHER)}
    others = {
        f"other{number}": {"key": f"{OTHER_KEYS}{number}", **session, **stamping_hooks(rig, "others")}
        for number in range(OTHERS)
    }
    first = supervisor_of(rig, agent.url, LOADED, {"shared": shared[LOADED], **others}, port=port)
    first.start()
    wait_until(lambda: len(rig.stamps.since(0)) == 2 * (OTHERS + 1), "all elections won")
    supervisor_of(rig, agent.url, OTHER, {"shared": shared[OTHER]}).start()
    _both_in_line(agent)
    return first


def _both_in_line(agent: Agent) -> None:
    """Wait until the supervisor that does not hold has a session again, and for SETTLE_S."""
    wait_until(lambda: len(agent.sessions()) == OTHERS + 2, "a session of each supervisor")
    time.sleep(SETTLE_S)


def _connect_idle(clients: ExitStack, port: int) -> None:
    for _ in range(IDLE):
        clients.enter_context(socket.create_connection((HOST, port)))


def _round(lab: Lab, rig: Rig, agent: Agent, supervisor: Contender, side: Side) -> None:
    """Hand over and back for as long as a round lasts."""
    began_at, cpu_s = time.time(), supervisor.cpu_s
    end_at = began_at + (ROUND_QUICK_S if lab.quick else ROUND_S)
    while time.time() < end_at:
        for old in (LOADED, OTHER):
            side.handed_ms.append(_hand_over(rig, old))
            time.sleep(REST_S)
            _both_in_line(agent)
    side.windows.append((began_at, time.time()))
    side.cpu_s += supervisor.cpu_s - cpu_s


def _hand_over(rig: Rig, old: str) -> float:
    """Hand the election over, and return the milliseconds."""
    mark = rig.stamps.mark()
    rig.step_down(old, "shared", REST_S)
    end = rig.stamps.wait(mark, lambda stamp: stamp.who == old and stamp.edge == "end")
    begin = rig.stamps.wait(mark, lambda stamp: stamp.who != old and stamp.edge == "begin")
    return (begin.at_ns - end.at_ns) / 1e6


def _figures(quiet: Side, loaded: Side) -> list[Figure]:
    figures: list[Figure] = []
    for what in ("hand-over", "renewal late by"):
        series = [side.handed_ms if what == "hand-over" else side.late_ms for side in (quiet, loaded)]
        for kind, samples in zip(("quiet", "loaded"), series, strict=True):
            figures += median_and_p95(ROW, f"{what}, {kind}", samples, "ms")
        before, after = series
        medians = statistics.median(after) / statistics.median(before)
        figures += [
            Figure(ROW, f"{what}, loaded / quiet, medians", medians, "×", LIMIT),
            Figure(ROW, f"{what}, loaded / quiet, p95", p95(after) / p95(before), "×", LIMIT),
        ]
    return [*figures, *_costs(quiet, loaded)]


def _costs(quiet: Side, loaded: Side) -> list[Figure]:
    asked = loaded.asked
    answers = sum(each.answers for each in asked)
    mean_ms = sum(each.mean_ms * each.answers for each in asked) / answers
    asking_s = sum(each.cpu_s for each in asked)
    return [
        Figure(ROW, f"an answer beside {IDLE} idle connections, mean", mean_ms, "ms"),
        Figure(ROW, f"the slowest of {answers} answers", max(each.worst_ms for each in asked), "ms"),
        Figure(ROW, "CPU of the supervisor, quiet", 100 * quiet.cpu_s / quiet.seconds, "% of a core"),
        Figure(ROW, "CPU of the supervisor, loaded", 100 * loaded.cpu_s / loaded.seconds, "% of a core"),
        Figure(ROW, "CPU of those that ask", 100 * asking_s / loaded.seconds, "% of a core"),
    ]
