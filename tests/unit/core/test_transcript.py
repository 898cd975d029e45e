"""The hand-over in the docstring of the core, played by the core."""

import re
from dataclasses import dataclass, field

import supervisor.core
from supervisor.core import actions as a
from supervisor.core import events as e
from supervisor.core import outcomes as o
from supervisor.core import requests as r
from supervisor.core.contender.creation import new_contender
from supervisor.core.contender.state import Contender
from supervisor.core.contender.step import step
from tests.models.words import short
from tests.unit.core import play as p


def told(event: e.Event) -> str:
    """Return the event in words; of an answer only what decides."""
    if not isinstance(event, e.Answered):
        return short(event)
    outcome = event.outcome
    shows = (
        f"key of {outcome.session or 'nobody'}" if isinstance(outcome, o.KeyView) else type(outcome).__name__
    )
    return f"{type(event.request).__name__}: {shows}"


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
        request = next(each for each in reversed(self.begun) if isinstance(each, kind))
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
    block = re.search(r"\*A hand-over\..*?\n\n(.*?)\n\n", supervisor.core.__doc__ or "", re.S)
    assert block and [line.strip() for line in block[1].splitlines()] == node.lines
