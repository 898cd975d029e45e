"""Who acted when: a verdict on the consoles of two machines."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from tests.system.emulated.acts import acts, together_s
from tests.system.emulated.machine import Line


class End(StrEnum):
    """What becomes of a node that holds."""

    RESET = "its machine was reset before another node might act"
    HELD = "it held on"
    HANDED_OVER = "another node acted, and never both"
    BOTH = "both acted"


@dataclass(frozen=True, slots=True)
class Verdict:
    """What two nodes did in a scene, in seconds of the host's clock.

    last_act: the last time that the first node acted.
    reset_at: when its machine was reset. None: it still runs.
    rival: the first moment at which Consul may let another node hold the key. None: it was never lost.
    first_act: the first time that the second node acted. None: it has not.
    together_s: for how long both acted.
    """

    last_act: float
    reset_at: float | None
    rival: float | None
    first_act: float | None
    together_s: float

    @property
    def distance_s(self) -> float | None:
        """How long before `rival` the first node had stopped acting; negative when it was too late."""
        return None if self.rival is None else self.rival - self.last_act

    @property
    def end(self) -> End:
        """What became of the first node; a reset that comes too late is BOTH."""
        if self.together_s or (self.distance_s is not None and self.distance_s <= 0):
            return End.BOTH
        if self.reset_at is not None:
            return End.RESET
        return End.HELD if self.first_act is None else End.HANDED_OVER


def judge(old: Sequence[Line], new: Sequence[Line], reset_at: float | None, rival: float | None) -> Verdict:
    """Return what the consoles of the node that held and of the other node show."""
    acted, rivalled = acts(old), acts(new)
    first_act = rivalled[0] if rivalled else None
    return Verdict(acted[-1], reset_at, rival, first_act, together_s(acted, rivalled))
