"""Who acted when, who was shot when, and how the guard ended: a verdict on the stamps of two machines."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import pairwise

from tests.system.emulated.acts import acts, together_s
from tests.system.emulated.machine import Line


class End(StrEnum):
    """What becomes of a node that holds, or how the other node learned that it had ended."""

    HELD = "it held on"
    BOTH = "both acted"
    SAID = "said"
    FENCED = "fenced"
    WAITED = "waited"
    CONFIRMED = "confirmed"
    UNGUARDED = "unguarded"  # the other node acted without a guard


NO_SHOT = (End.HELD, End.SAID)  # of a holder that lives
GAP_S = 2.0  # between two acts of an application that nobody stops, on an emulated machine


@dataclass(frozen=True, slots=True)
class Verdict:
    """What two nodes did in a scene.

    after_s: how long after the loss the other node acted. None: it has not.
    both_until_s: how long after the loss the first node still acted.
    shots: each order to switch a machine off, in seconds after the loss, and the name of the machine.
    gap_s: the longest time between two acts of the first node.
    hooks: how many on_acquire and on_lose of both nodes have begun.
    reset: whether a watchdog has reset the first node.
    """

    end: End
    after_s: float | None
    together_s: float
    both_until_s: float
    shots: tuple[tuple[float, str], ...]
    gap_s: float
    hooks: int
    reset: bool = False

    def __str__(self) -> str:
        told = [self.end.value]
        told += [f"for {self.together_s:.1f} s, until {self.both_until_s:.1f} s"] if self.together_s else []
        if self.after_s is None:
            told.append(f"{self.hooks} hooks, {self.gap_s:.1f} s between two acts")
        else:
            told.append(f"the other node acted {self.after_s:.2f} s after the loss")
        told += [f"shot {name} after {at:.2f} s" for at, name in self.shots] or ["no shot"]
        return ", ".join([*told, *(["reset"] if self.reset else [])])


def judge(
    old: Sequence[Line],
    new: Sequence[Line],
    lost_at: float | None,
    asked: Sequence[tuple[float, str]],
    *,
    reset: bool = False,
) -> Verdict:
    """Return what the stamps of the node that held and of the other node show."""
    acted, rivalled = acts(old), acts(new)
    lost_at = acted[-1] if lost_at is None else lost_at
    both_s = together_s(acted, rivalled)
    after_s = rivalled[0] - lost_at if rivalled else None
    if both_s:
        end = End.BOTH
    else:
        end = _guard(new) if rivalled else End.HELD
    shots = tuple((at - lost_at, name) for at, name in asked)
    gap_s = max((later - at for at, later in pairwise(acted)), default=0.0)
    hooks = sum(re.match("previous end: |on_lose$", line.text) is not None for line in (*old, *new))
    return Verdict(end, after_s, both_s, acted[-1] - lost_at, shots, gap_s, hooks, reset)


def missed(
    verdict: Verdict,
    end: End,
    soonest_s: float,
    latest_s: float,
    old: str,
    shots: int = 1,
    *,
    gap_s: float = GAP_S,
    reset: bool = False,
) -> str:
    """Return what should have happened instead, in one line. Blank: it did.

    Where both may act, the latest time is that at which the first node still does. Only ``old``, the machine
    of the holder, may be switched off, always before the other node acts, and not while it lives and speaks.
    Of a holder that holds on no hook but the first on_acquire runs, and its application never pauses.

    shots: how often it must be; negative: how often at most. reset: whether a watchdog has to reset it.
    """
    wanted = 0 if end in NO_SHOT else shots
    count = len(verdict.shots)
    in_order = all(name == old and at < (verdict.after_s or 0.0) for at, name in verdict.shots)
    shot = in_order and (count == wanted if wanted >= 0 else 1 <= count <= -wanted)
    time_s = verdict.both_until_s if end is End.BOTH else verdict.after_s
    if end is End.HELD:
        in_time = verdict.hooks == 1 and verdict.gap_s <= gap_s
    else:
        in_time = time_s is not None and soonest_s <= time_s <= latest_s
    if verdict.end is end and shot and in_time and verdict.reset is reset:
        return ""
    when = f", {soonest_s:g} to {latest_s:.1f} s after the loss"
    when = f", 1 hook, at most {gap_s:.1f} s between two acts" if end is End.HELD else when
    shoot = f"{'at most ' if wanted < 0 else ''}{abs(wanted)} shots, of {old}, before the other node acts"
    return f"{end}{when}, {shoot}, {'a reset' if reset else 'no reset'}"


def _guard(stamps: Sequence[Line]) -> End:
    """Return how the guard ended, as the first on_acquire printed it."""
    for line in stamps:
        if said := re.search(r"previous end: (said|fenced|waited|confirmed)", line.text):
            return End(said[1])
    return End.UNGUARDED
