"""The table of a campaign and the summary below it. The functions here are pure: they measure nothing."""

from collections.abc import Sequence
from dataclasses import dataclass

from tests.system.cluster.faults import Fault

LATE_S = 2.0  # tolerance for a busy machine, beyond the failover that `check` prints


@dataclass(frozen=True, slots=True)
class Row:
    """One fault and its outcome, in seconds; ``bound_s`` is the longest failover that `check` promises."""

    number: int
    fault: Fault
    on: str
    outcome: str
    gap_s: float
    bound_s: float
    overlap_s: float
    excused_s: float
    survived: bool

    @property
    def late(self) -> bool:
        """Whether no node led for longer than promised."""
        return self.gap_s > self.bound_s + LATE_S

    @property
    def cells(self) -> tuple[str, ...]:
        """The cells as text, in the order of HEADINGS."""
        verdict = "OVERLAP" if self.overlap_s else "NOT SURVIVED" if not self.survived else ""
        return (
            str(self.number), self.fault.kind, self.on, self.outcome, f"{self.gap_s:.1f}",
            f"{self.bound_s:.1f}", f"{self.overlap_s:.2f}", verdict or ("late" if self.late else "ok"),
        )  # fmt: skip


HEADINGS = ("", "fault", "hits", "outcome", "no leader s", "check says s", "overlap s", "verdict")
WIDTHS = (3, 19, 10, 20, 11, 12, 9, 12)


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
        return (*self.wrong, *lost)

    @property
    def lost_its_cluster(self) -> bool:
        """Whether a fault was not survived, so that further faults would show nothing."""
        return any(not row.survived for row in self.rows)

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
            *(f"BROKEN: {complaint}" for complaint in self.complaints),
        ]
        return "\n".join(lines)


def shown(cells: Sequence[str]) -> str:
    """Return one line of the table."""
    return "  ".join(cell.ljust(width) for cell, width in zip(cells, WIDTHS, strict=True)).rstrip()
