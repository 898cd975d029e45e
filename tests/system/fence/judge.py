"""Who acted when, and how the guard of the next holder ended: a verdict on the consoles of two machines."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from tests.system.emulated.acts import acts, together_s
from tests.system.emulated.machine import Line


class End(StrEnum):
    """What becomes of a node that holds, or how the other node learned that it had ended."""

    HELD = "it held on"
    BOTH = "both acted"
    SAID = "said"
    FENCED = "fenced"
    WAITED = "waited"
    UNGUARDED = "unguarded"  # the other node acted without a guard


NO_SHOT = (End.HELD, End.SAID)  # of a holder that lives


@dataclass(frozen=True, slots=True)
class Verdict:
    """What two nodes did in a scene.

    after_s: how long after the loss the other node acted. None: it has not.
    both_until_s: how long after the loss the first node still acted.
    asked: the machines that the device was asked to switch off.
    """

    end: End
    after_s: float | None
    together_s: float
    both_until_s: float
    asked: frozenset[str]

    def __str__(self) -> str:
        told = [self.end.value]
        told += [f"for {self.together_s:.1f} s, until {self.both_until_s:.1f} s"] if self.together_s else []
        told += [] if self.after_s is None else [f"the other node acted {self.after_s:.2f} s after the loss"]
        return ", ".join([*told, f"asked to switch off: {', '.join(sorted(self.asked)) or 'none'}"])


def judge(old: Sequence[Line], new: Sequence[Line], lost_at: float | None, asked: Sequence[str]) -> Verdict:
    """Return what the consoles of the node that held and of the other node show."""
    acted, rivalled = acts(old), acts(new)
    lost_at = acted[-1] if lost_at is None else lost_at
    both_s = together_s(acted, rivalled)
    after_s = rivalled[0] - lost_at if rivalled else None
    if both_s:
        end = End.BOTH
    else:
        end = _guard(new) if rivalled else End.HELD
    return Verdict(end, after_s, both_s, acted[-1] - lost_at, frozenset(asked))


def missed(verdict: Verdict, end: End, soonest_s: float, latest_s: float, old: str) -> str:
    """Return what should have happened instead, in one line. Blank: it did.

    Where both may act, the latest time is that at which the first node still does. Only ``old``, the machine
    of the holder, may be switched off, and not while it lives and speaks.
    """
    shot = frozenset() if end in NO_SHOT else verdict.asked & {old}
    time_s = verdict.both_until_s if end is End.BOTH else verdict.after_s
    in_time = end is End.HELD or (time_s is not None and soonest_s <= time_s <= latest_s)
    if verdict.end is end and verdict.asked == shot and in_time:
        return ""
    when = "" if end is End.HELD else f", {soonest_s:g} to {latest_s:.1f} s after the loss"
    return f"{end}{when}, asked to switch off: {'none' if end in NO_SHOT else f'at most {old}'}"


def _guard(console: Sequence[Line]) -> End:
    """Return how the guard ended, as the first on_acquire printed it."""
    for line in console:
        if said := re.search(r"previous end: (said|fenced|waited)", line.text):
            return End(said[1])
    return End.UNGUARDED
