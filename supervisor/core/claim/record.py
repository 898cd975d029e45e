"""The tenure record of an election: what ``<key>/.tenure`` in Consul says of the node that may be acting.

A holder with ``fence`` writes it in the transaction that acquires, and takes it away in the one that
releases. So whoever acquires the key and finds the record of another session knows that this holder did not
end in order, and waits behind a guard (``core.claim.guard``).
"""

from enum import StrEnum
from math import ceil

from supervisor.core.frozen import dataclass, replace
from supervisor.core.lease import LOCK_DELAY_MAX_S, margin_of
from supervisor.core.settings import Place

TENURE_SUFFIX = "/.tenure"


class State(StrEnum):
    """How far a tenure has come, as its record says."""

    ACTING = "acting"  # its application may act
    STOPPING = "stopping"  # on_lose runs
    ENDED = "ended"  # nothing of it acts any more


@dataclass(frozen=True, slots=True)
class TenureRecord:
    """The content of the key."""

    session: str = ""
    state: State = State.ACTING
    lock_delay_s: float = LOCK_DELAY_MAX_S  # how long after its end the holder may still act
    lose_time_s: float = 0.0
    target: str | None = None  # how the machine is named to the fence. None: it cannot be shot
    node: str | None = None  # its name in Consul. None: not known
    place: Place = Place()
    token: int = 0  # the fencing token of the tenure. 0: the index at which the record was made
    margin_s: float = 0.0  # that of the lock-delay in the file. 0: that of ``lock_delay_s``
    serial: int = 0  # grows with each write, because an identical one would not move Consul's index
    waited_s: float = 0.0  # how long guards have surely waited for this tenure already

    @property
    def is_long(self) -> bool:
        """Whether a release that knows no `outage` would take it for a shorter one."""
        return self.lock_delay_s > LOCK_DELAY_MAX_S

    @property
    def stops_s(self) -> float:
        """How long a holder that has said that it stops may take for that."""
        return self.lose_time_s + (self.margin_s or margin_of(self.lock_delay_s))

    @property
    def name(self) -> str:
        """The name of its node for people: that of the host, as everywhere else."""
        return self.place.host or self.node or "the former holder"


# A record that cannot be read, or that is gone although the key's flags tell of one: nobody can be shot, and
# the holder may act for as long as any lock-delay lasts.
UNREADABLE = TenureRecord()

ABSENT = TenureRecord(state=State.ENDED, lock_delay_s=0.0)  # there is none

LEFT_BEHIND = (
    "the tenure record in Consul says that this machine acts, and its journal knows no such tenure: others "
    "wait for it and may switch it off; if nothing of it acts, run: consul-supervisor recover {item}"
)
SAME_TARGET = (
    "no fence would run against {node}, because its target {target} is also that of this node; "
    "name another target in the file of each node"
)


def in_whole_ms(length_s: float) -> float:
    """Return the time as the record can carry it, rounded up, so that a record which is read equals ours."""
    return ceil(round(length_s * 1000, 6)) / 1000


def merge(kept: TenureRecord, claim: TenureRecord) -> TenureRecord:
    """Return our record as it stands, no shorter than the settings of the file ask for."""
    kept = no_shorter(kept, claim, "lock_delay_s", "lose_time_s", "margin_s")
    return replace(kept, state=claim.state, waited_s=0.0)


def no_shorter(kept: TenureRecord, claim: TenureRecord, *lengths: str) -> TenureRecord:
    """Return the record that is kept, with each of these lengths no shorter than in the other."""
    return replace(kept, **{each: max(getattr(kept, each), getattr(claim, each)) for each in lengths})
