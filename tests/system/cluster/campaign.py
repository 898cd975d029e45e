"""Faults one after the other while three supervisors contend, and a row of figures for each.

After each fault the cluster is mended, and the next fault begins only when everything works again. So one
fault at a time is judged, within the limits that the documentation of the lease states.
"""

import signal
from collections.abc import Iterator, Sequence
from math import inf

from supervisor.adapters.runtime.clock import boottime
from tests.support import tenures
from tests.support.patience import patient
from tests.support.supervisor import FAULTS as FAULT_MARKS
from tests.support.tenures import SHOT, Record, Tenure
from tests.system.cluster import election, judge
from tests.system.cluster.cluster import CLIENTS, Cluster
from tests.system.cluster.faults import ALL_KINDS, SERVER_KINDS, Fault, FaultTargets
from tests.system.cluster.program import say
from tests.system.cluster.report import HEADINGS, Row, Verdict, shown

# For so long a server that led and stood still goes on trying to end the sessions whose TTL then ran out, and
# ends living ones if it leads again (Consul's invalidateSession: after 10, 20, 40, 80 and 160 s).
STALE_S = 310.0
SPEAK_S = 5.0  # in which a node that reaches Consul again says what became of its tenure
REST_S = 2.0  # between two faults: every supervisor renews and reads, and a loss that has begun ends


class Campaign:
    """One run of faults, of which each line of the table is printed as soon as it is known.

    quick: the supervisors have a quick file.
    fence: the supervisors have a fence, which kills the one of the former holder.
    outage: they outlast a long silence of Consul.
    elections: how many there are. The holder is that of the first one; the promises are those of each.
    """

    def __init__(self, cluster: Cluster, quick: bool, fence: bool, outage: bool, elections: int = 1) -> None:
        self.cluster = cluster
        self._fence = fence
        self._thawed_at: dict[str, float] = {}  # by server
        self._records_path = cluster.folder / "records"
        self._supervisors = {}
        for node in CLIENTS:
            settings = election.settings(
                node, self._records_path, quick, fence, election.OUTAGE_S if outage else None
            )
            files = election.several(settings, elections)
            self._supervisors[node] = election.supervisor(cluster, node, files, cluster.folder)
        self._names = tuple(files)
        # The fence works, so without `outage` a failover takes no longer than with it.
        usual = election.settings(CLIENTS[0], self._records_path, quick, fence)
        self._figures = election.figures(usual, cluster.folder)
        self._silence_s, self._room_s = self._figures.silence_s, self._figures.room_s
        if outage:
            self._silence_s = election.OUTAGE_S
            self._room_s = election.OUTAGE_S + 2 * (self._room_s - self._figures.silence_s)

    def run(self, faults: Sequence[Fault]) -> Verdict:
        """Run the faults until one is not survived, then stop all supervisors."""
        began_at = boottime()
        for supervisor in self._supervisors.values():
            self.cluster.supervise(supervisor)
        self._settle()
        say(shown(HEADINGS))
        rows: list[Row] = []
        for number, fault in enumerate(faults, 1):
            rows.append(self._one(number, fault))
            say(shown(rows[-1].cells))
            if not rows[-1].survived:
                return Verdict(tuple(rows), tuple(self._complaints()), boottime() - began_at)
        stopped = tuple(self._stop())
        return Verdict(tuple(rows), (*self._complaints(), *stopped), boottime() - began_at)

    def _one(self, number: int, fault: Fault) -> Row:
        holder = judge.holder(self._tenures())
        assert holder is not None, "the cluster is whole"
        on = holder.node if fault.at_holder or fault.kind in SERVER_KINDS else fault.node
        scene = FaultTargets(self.cluster, self._supervisors, self._figures, self._note)
        began_at = boottime()
        survived, mended_at = True, inf
        try:
            ALL_KINDS[fault.kind](scene, on, fault)
            self.cluster.until(lambda: self._can_speak(on), f"{on} reaches Consul")
            mended_at = boottime()
            self._settle()
        except TimeoutError as error:
            say(f"     {error}")
            survived = False
        over_at = boottime()
        if scene.frozen:
            self._thawed_at[scene.frozen] = over_at
        found = self._tenures()
        now_holds = judge.holder(found)
        # After a fault of a server, more than `check` prints: elections and 2 x ttl.
        more_s = scene.elections_s + 2 * self._figures.ttl_s if scene.elections_s else 0.0
        unlawful, excused = self._overlaps(found, began_at, over_at)
        shots = [each for each in self._records() if each.stage == SHOT and each.at >= began_at]
        return Row(
            number=number,
            fault=fault,
            on=_on(fault, on, holder),
            outcome=_outcome(holder, now_holds, len([t for t in found if t.begin.at >= began_at])),
            agent_hangs=scene.agent_hangs,
            gap_s=judge.longest_gap_s(found, began_at, over_at),
            bound_s=self._figures.failover_s + more_s,
            overlap_s=unlawful,
            excused_s=excused,
            survived=survived,
            no_servers_s=scene.elections_s,
            needless=survived and self._is_needless(fault, scene, holder, now_holds),
            shots=len(shots),
            needless_shots=sum(not self._may_be_shot(each, on, fault, scene, mended_at) for each in shots),
        )

    def _can_speak(self, node: str) -> bool:
        return self._supervisors[node].running and self.cluster.clients[node].answers

    def _may_be_shot(
        self, shot: Record, on: str, fault: Fault, scene: FaultTargets, mended_at: float
    ) -> bool:
        """Return whether this node could not tell Consul what becomes of its tenure."""
        silenced = fault.kind not in SERVER_KINDS or scene.agent_hangs
        return shot.node == on and silenced and shot.at <= mended_at + patient(SPEAK_S)

    def _is_needless(self, fault: Fault, scene: FaultTargets, before: Tenure, after: Tenure | None) -> bool:
        """Return whether the holder changed although Consul was silent for less than `silence`."""
        if fault.kind not in {*SERVER_KINDS, "reload-kill"} or (
            after is not None and after.session == before.session
        ):
            return False
        ends = (
            each.reason for each in self._records() if (each.session, each.event) == (before.session, "lose")
        )
        thawed_at = self._thawed_at.get(self.cluster.leading_server().name, -STALE_S)
        if "session-invalidated" in ends and boottime() - thawed_at < STALE_S:
            return False
        return scene.elections_s < self._silence_s and not scene.agent_hangs

    def _settle(self) -> None:
        """Wait until the cluster is whole and a node holds, and still holds after a rest."""
        self.cluster.wait_whole()
        self.cluster.until(self._all_take_part, "every supervisor has a session")
        self.cluster.until(self._is_calm, "Consul and the hooks name the same holder, for a while")

    def _is_calm(self) -> bool:
        before = judge.holder(self._tenures())
        self.cluster.pass_time(REST_S)
        after = judge.holder(self._tenures())
        if before is None or after is None or before.session != after.session:
            return False
        return self.cluster.server.session_on(election.KEY) == after.session and self._all_take_part()

    def _all_take_part(self) -> bool:
        names = self.cluster.server.session_names()
        return all(election.session_name(node) in names for node in CLIENTS)

    def _stop(self) -> Iterator[str]:
        """Stop all supervisors as an operator does; yield a sentence for each thing that is wrong."""
        everybody = self._supervisors.values()
        self.cluster.until(lambda: all(supervisor.running for supervisor in everybody), "all run")
        for node, supervisor in self._supervisors.items():
            if code := supervisor.stop():
                yield f"the supervisor of {node} ended with {code} on SIGTERM"
        for name in self._names:
            for tenure in tenures.unfinished(self._tenures(name)):
                yield f"{tenure.node} never ran on_lose of {name} for token {tenure.token}"

    def _complaints(self) -> Iterator[str]:
        for found in map(self._tenures, self._names):
            for overlap in self._all_overlaps(found):
                if not overlap.beyond_limits:
                    yield f"overlap: {overlap}"
            yield from tenures.wrong_tokens(found)
        shot = self.cluster.folder / "shots"
        boots = shot.read_text().splitlines() if shot.exists() else []
        for boot in sorted({each for each in boots if boots.count(each) > 1}):
            yield f"shot {boots.count(boot)} times: {boot}"
        for node, supervisor in self._supervisors.items():
            for code in supervisor.unexpected:
                if self._fence and code == -signal.SIGKILL:
                    continue  # it was shot
                yield f"the supervisor of {node} ended by itself with {code}"
            text = supervisor.log_path.read_text(errors="replace")
            for mark in FAULT_MARKS:
                if mark in text:
                    yield f"{mark} in {supervisor.log_path}"

    def _overlaps(self, found: Sequence[Tenure], since: float, until: float) -> tuple[float, float]:
        """Return the seconds of double holding that began in this window: first the unlawful, then the
        excused.
        """
        begun = [o for o in self._all_overlaps(found) if since <= o.second.begin.at <= until]
        unlawful = sum(max(overlap.length_s, 0.01) for overlap in begun if not overlap.beyond_limits)
        return unlawful, sum(overlap.length_s for overlap in begun if overlap.beyond_limits)

    def _all_overlaps(self, found: Sequence[Tenure]) -> list[judge.Overlap]:
        # With a fence a tenure record keeps others back, which no restart of a server cuts short.
        delay_s = 0.0 if self._fence else self._figures.lock_delay_s
        return judge.overlaps(found, self._records(), delay_s)

    def _records(self) -> list[Record]:
        return tenures.read_records(self._records_path)

    def _tenures(self, name: str = election.NAME) -> list[Tenure]:
        return tenures.tenures(self._records(), name, self._room_s)

    def _note(self, node: str, what: str, at: float | None) -> None:
        with self._records_path.open("a") as file:
            file.write(tenures.told_line(what, node, boottime() if at is None else at))


def _on(fault: Fault, node: str, holder: Tenure) -> str:
    if fault.kind in SERVER_KINDS:
        return "servers"
    return f"{node} (holder)" if node == holder.node else node


def _outcome(before: Tenure, after: Tenure | None, begun: int) -> str:
    if after is None:
        return "nobody holds"
    if after.session == before.session:
        return f"{after.node} held on"
    return f"{before.node} to {after.node}" + (f", {begun} tenures" if begun > 1 else "")
