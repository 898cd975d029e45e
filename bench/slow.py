"""Row: whether slow or hanging things delay other elections, in their renewals and in their hand-overs.

Two supervisors hand some elections over and back by `step-down`. One of them also holds twenty other
elections and has the trouble. Troubled and quiet spells take turns in one run. A hand-over is timed
from the end of the old on_lose to the first instruction of the next on_acquire. A renewal of the twenty
counts by how much later it reaches Consul, by Consul's own log, than the pace of its session says.
With a full disk a node gives up and does not lead. So there only hand-overs from that node count, in
troubled and in quiet spells.
"""

import json
import statistics
import time
from collections.abc import Mapping
from contextlib import ExitStack, nullcontext
from dataclasses import dataclass, field
from typing import Any

from bench.agent_log import LOGGED, Window, late_ms, renewals
from bench.contender import COMMAND, stamping_hooks, supervisor_of
from bench.figures import Figure, p95
from bench.lab import Lab, Rig, wait_until
from bench.troubles import Trouble, Troubles
from tests.support.consul import Agent

LIMIT = 1.3  # times the quiet spells, medians
LATE_MIN_MS = 1.0
OTHERS = 20
HANDED = 6  # elections that go over and back
TTL_S = 10
ROUNDS, ROUNDS_QUICK = 4, 1  # in each, every trouble has its spell, and a quiet one before it
SPELL_S, SPELL_QUICK_S = 10.0, 5.0
REST_S = 1.0  # of the former holder, so that the other supervisor acquires, and it waits again soon
BREATH_S = 0.3  # between two hand-overs
SETTLE_S = 0.5  # so that the begin or end of a trouble is over
KEYS, OTHER_KEYS = "bench/slow/handed/", "bench/slow/others/"
TROUBLED, FREE = "troubled", "free"
SESSION = {"session": {"ttl": f"{TTL_S}s"}}
ROW = "slow things"
QUIET = Trouble("quiet", nullcontext)


@dataclass(eq=False, slots=True)
class Spells:
    """All spells of one kind. ``handed_ms``: the hand-overs, by the supervisor that handed over."""

    handed_ms: dict[str, list[float]] = field(default_factory=lambda: {TROUBLED: [], FREE: []})
    windows: list[Window] = field(default_factory=list)
    late_ms: list[float] = field(default_factory=list)

    def all_ms(self, like: "Spells") -> list[float]:
        """Return the hand-overs by supervisors that have hand-overs in the spells ``like``."""
        return [ms for who, series in self.handed_ms.items() if like.handed_ms[who] for ms in series]


def measure(lab: Lab) -> list[Figure]:
    """Measure every trouble, with a quiet spell before each."""
    lab.say(ROW)
    with lab.rig() as rig, ExitStack() as exits:
        agent = rig.agent(config=LOGGED)
        spell_s = SPELL_QUICK_S if lab.quick else SPELL_S
        troubles = Troubles(rig, agent, exits, spell_s)
        if not troubles.own_disk:
            lab.say("cannot fill a disk: only root may mount one of its own")
        stage = Stage(rig, agent, troubles, spell_s)
        spells: dict[Trouble, Spells] = {QUIET: Spells()}
        for _ in range(lab.samples(ROUNDS, ROUNDS_QUICK)):
            for trouble in stage.troubles:
                stage.play(QUIET, spells[QUIET])
                stage.play(trouble, spells.setdefault(trouble, Spells()))
        stage.tell_late(spells)
    return _figures(spells)


class Stage:
    """Both supervisors, of which the one with the troubles has won all elections."""

    def __init__(self, rig: Rig, agent: Agent, troubles: Troubles, spell_s: float) -> None:
        self._rig = rig
        self._agent = agent
        self._spell_s = spell_s
        self.troubles = tuple(troubles.all())
        config = {
            "consul": {"address": agent.url},
            "state_dir": str(troubles.state_dir),
            "elections": {**self._handed(TROUBLED), **self._others(), **troubles.observers},
        }
        path = rig.folder / f"{TROUBLED}.yaml"
        path.write_text(json.dumps(config))
        contender = rig.contender(TROUBLED, troubles.started([*COMMAND, "run", str(path)]))
        contender.start()
        troubles.pid = contender.pid
        wait_until(lambda: len(rig.stamps.since(0)) == 2 * (OTHERS + HANDED), "all elections won")
        supervisor_of(rig, agent.url, FREE, self._handed(FREE)).start()
        self._all_in_line()

    def _handed(self, who: str) -> dict[str, Any]:
        return {
            f"handed{n}": {"key": f"{KEYS}{n}", **SESSION, **stamping_hooks(self._rig, f"{who}-{n}")}
            for n in range(HANDED)
        }

    def _others(self) -> dict[str, Any]:
        return {
            f"other{n}": {"key": f"{OTHER_KEYS}{n}", **SESSION, **stamping_hooks(self._rig, "others")}
            for n in range(OTHERS)
        }

    def play(self, trouble: Trouble, spells: Spells) -> None:
        """Play one spell. Before and after it the troubled supervisor holds all elections."""
        with trouble.within():
            time.sleep(SETTLE_S)
            began_at = time.time()
            while time.time() < began_at + self._spell_s:
                self._hand_all(TROUBLED, trouble, spells)
                if not trouble.may_lead:
                    break
                self._hand_all(FREE, trouble, spells)
            time.sleep(max(0.0, began_at + self._spell_s - time.time()))
            spells.windows.append((began_at, time.time()))
        if not trouble.may_lead:
            self._all_in_line()
            self._hand_all(FREE, QUIET, Spells())
        self._all_in_line()

    def _hand_all(self, old: str, trouble: Trouble, spells: Spells) -> None:
        for number in range(HANDED):
            trouble.again()
            time.sleep(BREATH_S)
            spells.handed_ms[old].append(self._hand_over(old, number))
        if trouble.may_lead:
            self._all_in_line()

    def _hand_over(self, old: str, number: int) -> float:
        """Hand one election over, and return the milliseconds."""
        mark = self._rig.stamps.mark()
        self._rig.step_down(old, f"handed{number}", REST_S)
        end = self._rig.stamps.wait(
            mark, lambda stamp: stamp.who == f"{old}-{number}" and stamp.edge == "end"
        )
        begin = self._rig.stamps.wait(mark, lambda stamp: stamp.what == "acquire")
        return (begin.at_ns - end.at_ns) / 1e6

    def _all_in_line(self) -> None:
        """Wait until each supervisor has a session for each of its elections, and for SETTLE_S."""
        count = OTHERS + 2 * HANDED + 1  # one for the observed keys
        wait_until(lambda: len(self._agent.sessions()) == count, f"{count} sessions")
        time.sleep(SETTLE_S)

    def tell_late(self, spells: Mapping[Trouble, Spells]) -> None:
        """Fill in how late the renewals in these spells were."""
        sessions = {entry["Session"] for entry in self._agent.kv_list(OTHER_KEYS)}
        times = renewals(self._agent.log, sessions)
        for each in spells.values():
            each.late_ms = late_ms(times, each.windows)


def _figures(spells: Mapping[Trouble, Spells]) -> list[Figure]:
    quiet = spells[QUIET]
    figures = _medians(QUIET.name, quiet)
    for trouble, troubled in spells.items():
        if trouble is not QUIET:
            figures += _medians(trouble.name, troubled)
            handed = statistics.median(troubled.all_ms(troubled)) / statistics.median(quiet.all_ms(troubled))
            late = _floored(troubled.late_ms) / _floored(quiet.late_ms)
            figures += [
                Figure(ROW, f"{trouble.name}: hand-over / quiet, medians", handed, "×", LIMIT),
                Figure(ROW, f"{trouble.name}: renewal late / quiet, medians", late, "×", LIMIT),
            ]
    return figures


def _floored(late_ms: list[float]) -> float:
    """Return the median, or LATE_MIN_MS if that is more, because timers of a quiet machine are that late."""
    return max(LATE_MIN_MS, statistics.median(late_ms))


def _medians(name: str, spells: Spells) -> list[Figure]:
    figures: list[Figure] = []
    for what, samples in (("hand-over", spells.all_ms(spells)), ("renewal late by", spells.late_ms)):
        middle, most = statistics.median(samples), p95(samples)
        figures += [
            Figure(ROW, f"{name}: {what}, median of {len(samples)}", middle, "ms"),
            Figure(ROW, f"{name}: {what}, p95", most, "ms"),
        ]
    return figures
