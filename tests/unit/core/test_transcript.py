"""The transcripts in the docstrings of the core, played by the core."""

import re
from dataclasses import dataclass, field

import supervisor.core
import supervisor.core.claim
import supervisor.core.lock.semaphore
from supervisor.core import actions as a
from supervisor.core import events as e
from supervisor.core import outcomes as o
from supervisor.core import requests as r
from supervisor.core.claim.record import TenureRecord
from supervisor.core.contender.creation import new_contender
from supervisor.core.contender.state import Contender
from supervisor.core.contender.step import step
from supervisor.core.frozen import replace
from supervisor.core.settings import Fence, Place
from tests.models.words import short
from tests.unit.core import play as p
from tests.unit.core import slot_play as slots

LOST = TenureRecord("rival", lock_delay_s=30.0, target="db1", place=Place("m", "db1", "b"))


def told(event: e.Event) -> str:
    """Return the event in words; of an answer only what decides."""
    if not isinstance(event, e.Answered):
        return short(event)
    outcome = event.outcome
    shows = type(outcome).__name__
    if isinstance(outcome, o.KeyView):
        shows = f"key of {outcome.session or 'nobody'}{', guarded' if outcome.has_record_flags else ''}"
    elif isinstance(outcome, o.TenureShown | o.SlotsView | o.SlotWritten):
        shows = short(outcome)
    return f"{type(event.request).__name__}: {shows}"


def documented(title: str, docstring: str | None) -> list[str]:
    """Return the lines of the transcript below this title."""
    block = re.search(rf"\*{title}\..*?\n\n(.*?)\n\n", docstring or "", re.S)
    assert block is not None, title
    return [line.strip() for line in block[1].splitlines()]


@dataclass
class Transcript:
    """A waiter that takes over and steps down, with a line for each step."""

    contender: Contender
    lines: list[str] = field(default_factory=list)
    begun: list[a.Action] = field(default_factory=list)

    def happens(self, event: e.Event, now: float) -> None:
        self.contender, begun = step(self.contender, event, now)
        shown = [short(each) for each in begun if not isinstance(each, a.PrepareWrite)]
        self.lines.append(f"{told(event)} -> {', '.join(shown) or '-'}")
        self.begun += begun
        for write in (each for each in begun if isinstance(each, a.WriteRecord)):
            self.happens(e.RecordWritten(write), now)

    def answers(self, kind: type[r.Request], outcome: o.Outcome, now: float) -> None:
        request = next(each for each in reversed(self.begun) if type(each) is kind)
        assert isinstance(request, kind)
        self.happens(e.Answered(request, outcome), now)

    def hook_ends(self, now: float) -> None:
        started = next(each for each in reversed(self.begun) if isinstance(each, a.StartHook))
        self.happens(e.HookEnded(started, ok=True), now)


def test_the_transcript_of_a_hand_over_is_what_the_core_does() -> None:
    node = Transcript(new_contender(p.contender(), spread=0.0, instance="i"))
    node.happens(e.Tick(), 0.0)
    node.answers(p.CREATE, o.Created("s"), 0.1)
    node.answers(p.RENEW, o.SessionAlive(), 0.2)
    node.answers(p.WATCH, p.RIVAL, 0.3)
    node.answers(p.WATCH, o.KeyView(10, None, b"", 3, 10, 3), 2.0)
    node.answers(p.ACQUIRE, o.Won(3, 11, 4), 2.1)
    node.hook_ends(2.2)
    node.happens(e.StepDownAsked("n", 10.0), 4.0)
    node.hook_ends(4.1)
    node.answers(p.RELEASE, o.Done(), 4.2)
    node.happens(e.Tick(), 5.2)
    node.answers(p.DESTROY, o.Done(), 5.3)
    assert documented("A hand-over", supervisor.core.__doc__) == node.lines


def test_the_transcript_of_a_guard_is_what_the_core_does() -> None:
    """The machine of the former holder is lost, and the fence switches it off."""
    fence = Fence(p.hook("fence", 20.0), target="here", after_s=1.0)
    node = Transcript(new_contender(p.contender(fence=fence), spread=0.0, instance="i"))
    node.happens(e.Tick(), 0.0)
    node.answers(p.CREATE, o.Created("s"), 0.1)
    node.answers(p.RENEW, o.SessionAlive(), 0.2)
    node.answers(r.WatchTenure, o.TenureShown(6, 6, LOST), 0.3)
    node.answers(p.WATCH, replace(p.RIVAL, has_record_flags=True), 0.4)
    node.happens(e.Tick(), 0.7)
    node.answers(r.WatchTenure, o.TenureShown(6, 6, LOST), 0.8)
    node.answers(p.WATCH, o.KeyView(10, None, b"", 3, 10, 3, has_record_flags=True), 2.0)
    node.answers(p.ACQUIRE, o.Won(3, 11, 4), 2.1)
    node.answers(r.WatchTenure, o.TenureShown(6, 6, LOST), 2.2)
    node.happens(e.Tick(), 3.1)
    node.answers(r.WatchTenure, o.TenureShown(6, 6, LOST), 3.2)
    node.hook_ends(4.0)
    node.answers(r.Rewrite, o.Done(), 4.1)
    node.hook_ends(4.3)
    assert documented("A guard", supervisor.core.claim.__doc__) == node.lines


def test_the_transcript_of_a_slot_is_what_the_core_does() -> None:
    """All slots are taken, then one holder leaves. It is the only one before us in line."""
    node = Transcript(new_contender(slots.semaphore(limit=1), spread=0.0, instance="i"))
    node.happens(e.Tick(), 0.0)
    node.answers(p.CREATE, o.Created("s"), 0.1)
    node.answers(p.RENEW, o.SessionAlive(), 0.2)
    node.answers(slots.WATCH, slots.view("o1", at=slots.lock("o1", limit=1)), 0.3)
    node.answers(slots.ENROLL, o.SlotWritten(o.KeyIndexes(50, 50, 1), None), 0.4)
    node.answers(slots.WATCH, slots.view("o1", "s", at=slots.lock("o1", limit=1)), 0.5)
    node.answers(slots.WATCH, slots.view("s", at=slots.lock(limit=1, index=70), index=70), 2.0)
    node.answers(slots.TAKE, o.SlotWritten(o.KeyIndexes(50, 50, 1), o.KeyIndexes(9, 71, 0)), 2.1)
    node.hook_ends(2.2)
    node.happens(e.StepDownAsked("n", 10.0), 4.0)
    node.hook_ends(4.1)
    assert documented("A slot", supervisor.core.lock.semaphore.__doc__) == node.lines
