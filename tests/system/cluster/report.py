"""The table of a campaign and the summary below it. The functions here are pure: they measure nothing."""

from collections.abc import Sequence
from dataclasses import dataclass

from tests.support.patience import patient
from tests.system.cluster.faults import Fault

LATE_S = 2.0  # tolerance for a busy machine, beyond the failover that `check` prints


@dataclass(frozen=True, slots=True)
class Row:
    """One fault and its outcome, in seconds.

    bound_s: the longest failover that `check` promises.
    no_servers_s: how long Consul had no leader.
    agent_hangs: whether the holder's agent asked a server that stood still.
    needless: whether the holder changed although Consul was silent for less than `check` tolerates.
    shots: how often the fence has killed a node; ``needless_shots``: one that could speak.
    """

    number: int
    fault: Fault
    on: str
    outcome: str
    gap_s: float
    bound_s: float
    overlap_s: float
    excused_s: float
    survived: bool
    no_servers_s: float
    agent_hangs: bool
    needless: bool
    shots: int = 0
    needless_shots: int = 0

    @property
    def servers(self) -> str:
        """How long the servers had no leader, and a mark if the holder's agent was silent for longer."""
        return f"{self.no_servers_s:.1f}{'+' * self.agent_hangs}"

    @property
    def late(self) -> bool:
        """Whether no node led for longer than promised."""
        return self.gap_s > self.bound_s + patient(LATE_S)

    @property
    def cells(self) -> tuple[str, ...]:
        found = {
            "OVERLAP": self.overlap_s,
            "NOT SURVIVED": not self.survived,
            "NEEDLESS": self.needless,
            "NEEDLESS SHOT": self.needless_shots,
        }
        verdict = next((name for name, is_so in found.items() if is_so), "late" if self.late else "ok")
        return (
            str(self.number), self.fault.kind, self.on, self.servers, self.outcome,
            f"{self.gap_s:.1f}", f"{self.bound_s:.1f}", f"{self.overlap_s:.2f}", str(self.shots), verdict,
        )  # fmt: skip


HEADINGS = (
    "", "fault", "hits", "servers s", "outcome", "no leader s", "check says s", "overlap s", "shots",
    "verdict",
)  # fmt: skip
WIDTHS = (3, 20, 10, 9, 20, 11, 12, 9, 5, 13)


@dataclass(frozen=True, slots=True)
class Verdict:
    """The verdict on a whole campaign; ``wrong`` has the faults that the judges found."""

    rows: tuple[Row, ...]
    wrong: tuple[str, ...]
    took_s: float

    @property
    def complaints(self) -> tuple[str, ...]:
        """A sentence for each thing that is wrong; empty when all is well."""
        lost = [
            f"fault {row.number}, {row.fault.kind}: not survived" for row in self.rows if not row.survived
        ]
        needless = [
            f"fault {row.number}, {row.fault.kind}: a failover, although Consul was silent for "
            f"{row.no_servers_s:.1f} s only"
            for row in self.rows
            if row.needless
        ]
        shot = [
            f"fault {row.number}, {row.fault.kind}: a node was shot that could speak"
            for row in self.rows
            if row.needless_shots
        ]
        return (*self.wrong, *lost, *needless, *shot)

    @property
    def summary(self) -> str:
        """The last lines: faults survived, overlaps, and every complaint."""
        survived = sum(row.survived for row in self.rows)
        overlap_s = sum(row.overlap_s for row in self.rows)
        excused_s = sum(row.excused_s for row in self.rows)
        lines = [
            f"{survived} of {len(self.rows)} faults survived in {self.took_s:.0f} s",
            f"two held at once for {overlap_s:.2f} s, and for {excused_s:.2f} s beyond the limits",
            f"longest without a leader {max((row.gap_s for row in self.rows), default=0.0):.1f} s, "
            f"{sum(row.late for row in self.rows)} times later than `check` says",
            f"{sum(row.shots for row in self.rows)} shots, "
            f"{sum(row.needless_shots for row in self.rows)} of nodes that could speak",
            *(f"BROKEN: {complaint}" for complaint in self.complaints),
        ]
        return "\n".join(lines)


def shown(cells: Sequence[str]) -> str:
    return "  ".join(cell.ljust(width) for cell, width in zip(cells, WIDTHS, strict=True)).rstrip()
