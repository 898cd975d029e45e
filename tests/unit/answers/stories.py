"""Lives of an election and of a semaphore, step by step: at every moment some requests are pending.

``moments`` returns all of them. A test checks that every kind of request is pending at some moment.
"""

import copy
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from supervisor.core import actions as a
from supervisor.core import events as e
from supervisor.core import outcomes as o
from supervisor.core import requests as r
from supervisor.core.settings import CandidateCheck, Fence, ServiceSettings
from supervisor.core.tenure_record import State, TenureRecord
from tests.unit.core import play as elections
from tests.unit.core import slot_play as slots
from tests.unit.core.play import FREE, OURS, RIVAL, SILENCE, WON, Play

Story = Callable[[], Iterator[Play]]
FENCE = Fence(elections.hook("fence"), target="here")
LATER_S = 20.0  # until then every failed request has been repeated


@dataclass(frozen=True)
class Moment:
    """A contender at one time, with its requests under way."""

    story: str
    play: Play

    def state(self, request: r.Request) -> tuple[object, ...]:
        """Return all that decides how the core takes an answer to this request."""
        contender = self.play.contender
        phase = None if contender.tenure is None else contender.tenure.phase
        return type(request), contender.session.stage, phase, contender.role, contender.winding_up

    def after(self, request: r.Request, outcome: o.Outcome) -> Play:
        """Return the play after this answer, in which no other request is answered."""
        play = cloned(self.play)
        play.happens(play.now, e.Answered(request, outcome))
        play.passes(play.now + LATER_S, silent=True)
        return play


def cloned(play: Play) -> Play:
    """Return a copy that goes on independently."""
    clone = copy.copy(play)
    for name in ("records", "log", "under_way", "prepared"):
        setattr(clone, name, list(getattr(play, name)))
    return clone


def moments(story: Story) -> Iterator[Moment]:
    """Return all moments of one story."""
    for number, play in enumerate(story()):
        yield Moment(f"{story.__name__} {number}", cloned(play))


# --- elections -----------------------------------------------------------------------------------


def begins() -> Iterator[Play]:
    """Create a session, watch the key, and wait behind a rival."""
    play = Play(elections.contender())
    play.happens(0.0, e.Tick())
    yield play
    play.on(0.1, r.CreateSession, o.Created("s"))
    yield play
    play.on(0.2, r.WatchKey, RIVAL)
    yield play
    play.on(0.3, r.ReadSession, o.SessionInfo(15.0))
    yield play
    play.happens(play.deadline, e.Tick())
    yield play  # renewing
    play.on(play.now, r.WatchKey, SILENCE)
    play.happens(play.deadline, e.Tick())
    yield play  # repeating the watch


def leads() -> Iterator[Play]:
    """Try for a free key, hold, and end the tenure."""
    play = elections.waiting()
    play.on(0.2, r.WatchKey, FREE)
    yield play
    play.on(0.3, r.Acquire, WON)
    yield play
    play.happens(1.0, e.HookEnded(play.last(a.StartHook), ok=True))
    play.on(1.0, r.WatchKey, OURS)
    yield play
    while not any(isinstance(request, r.ReadKey) for request in play.under_way):
        play.happens(play.deadline, e.Tick())
    while not any(isinstance(request, r.RenewSession) for request in play.under_way):
        play.happens(play.deadline, e.Tick())
    yield play
    play.on(play.now, r.RenewSession, o.SessionGone())
    yield play
    play.on(play.now, r.ReadKey, OURS)
    play.happens(play.now, e.SettingsChanged("n", replace(play.contender.settings, value=b"new")))
    yield from _until(play, r.Rewrite)
    play.happens(play.now, e.PauseAsked("n"))
    yield play
    play.happens(play.now, e.StopAsked())
    yield play
    play.happens(play.now, e.HookEnded(play.last(a.StartHook), ok=True))
    yield play
    play.on(play.now, r.Rewrite, SILENCE)
    yield from _until(play, r.Release)
    play.on(play.now, r.Release, SILENCE)
    yield from _until(play, r.DestroySession)


def guards() -> Iterator[Play]:
    """Look before the first try, acquire over the record of another session, hold, and lose by its end."""
    play = elections.beginning(fence=FENCE)
    play.on(0.1, r.CreateSession, o.Created("s"))
    yield play
    play.on(0.2, r.WatchTenure, o.TenureShown(6))
    play.on(0.3, r.WatchKey, replace(FREE, is_guarded=True))
    play.on(0.4, r.Acquire, WON)
    yield play
    play.on(0.5, r.WatchTenure, o.TenureShown(6, 6, TenureRecord("old", State.ENDED)))
    yield play
    play.on(0.6, r.Rewrite, o.Done())
    play.on(0.7, r.WatchTenure, o.TenureShown(8, 8, TenureRecord("s")))
    play.on(0.8, r.WatchTenure, o.TenureShown(8, 8, TenureRecord("s")))
    play.happens(1.0, e.HookEnded(play.last(a.StartHook), ok=True))
    yield play
    play.on(1.1, r.WatchKey, replace(OURS, is_guarded=True))
    play.on(1.2, r.WatchKey, replace(RIVAL, is_guarded=True, lock_index=3))
    play.happens(1.5, e.Tick())
    yield from _until(play, r.MarkTenure)


def steps_down() -> Iterator[Play]:
    """Release and destroy while the process goes on."""
    play = elections.holding()
    play.happens(1.5, e.StepDownAsked("n", 5.0))
    yield play
    play.happens(1.6, e.HookEnded(play.last(a.StartHook), ok=True))
    yield from _until(play, r.Release)
    play.on(play.now, r.Release, o.Failed("500 No cluster leader"))
    yield from _until(play, r.Release)
    play.on(play.now, r.Release, o.Done())
    yield from _until(play, r.DestroySession)
    play.on(play.now, r.DestroySession, o.Throttled("429"))
    yield from _until(play, r.DestroySession)


def is_paused_amid_a_try() -> Iterator[Play]:
    """Pause while an attempt is under way that may have won."""
    play = elections.waiting()
    play.on(0.2, r.WatchKey, FREE)
    play.happens(0.3, e.PauseAsked("n"))
    yield play


def stops_amid_a_try() -> Iterator[Play]:
    """Stop the process while an attempt is under way that may have won."""
    play = elections.waiting()
    play.on(0.2, r.WatchKey, FREE)
    play.happens(0.3, e.StopAsked())
    yield play


def stops_amid_a_create() -> Iterator[Play]:
    """Stop while a session is being created, so that the session is destroyed."""
    play = Play(elections.contender())
    play.happens(0.0, e.Tick())
    play.happens(0.1, e.StopAsked())
    yield play


def observes() -> Iterator[Play]:
    """Watch without a session."""
    play = Play(elections.contender(contend=False, on_acquire=(), on_lose=(), on_change=(elections.UP,)))
    play.happens(0.0, e.Tick())
    yield play
    play.on(0.1, r.WatchKey, RIVAL)
    yield play


def adopts() -> Iterator[Play]:
    """Start from the record of an earlier process."""
    record = elections.holding().records[-1]
    play = Play(elections.contender(), record, now=2.0)
    play.happens(2.0, e.Tick())
    yield play
    play.on(2.1, r.ReadKey, OURS)
    yield play


def is_in_maintenance() -> Iterator[Play]:
    """Ask whether the node is in maintenance mode, as a waiter and as a holder."""
    check = CandidateCheck(None, maintenance=True)
    play = Play(elections.contender(candidate_check=check))
    play.happens(0.0, e.Tick())
    yield play
    play.on(0.2, r.WatchKey, FREE)
    yield play
    play.on(0.3, r.ReadMaintenance, o.InMaintenance())
    play.on(0.4, r.CreateSession, o.Created("s"))
    play.on(0.5, r.Acquire, WON)
    play.happens(5.0, e.Tick())
    yield play


def is_named() -> Iterator[Play]:
    """Be named in Consul while holding, and no longer."""
    play = Play(elections.contender(service=ServiceSettings("i", "leader")))
    play.happens(0.0, e.Tick())
    yield play
    play.on(0.1, r.ReadService, o.Instance.ABSENT)
    play.on(0.1, r.CreateSession, o.Created("s"))
    play.on(0.2, r.WatchKey, FREE)
    play.on(0.3, r.Acquire, WON)
    play.happens(1.0, e.HookEnded(play.last(a.StartHook), ok=True))
    play.on(1.0, r.ReadService, o.Instance.ABSENT)
    yield play
    play.on(1.1, r.RegisterService, o.Done())
    yield from _until(play, r.ReadKey)
    play.on(play.now, r.ReadKey, OURS)
    yield play
    play.on(play.now, r.PassService, o.Done())
    play.happens(play.now, e.StepDownAsked("n", 5.0))
    yield play
    play.on(play.now, r.ReadService, o.Instance.OURS)
    yield play


def is_throttled() -> Iterator[Play]:
    """Meet a Consul that takes no requests for a while."""
    play = Play(elections.contender())
    play.happens(0.0, e.Tick())
    for _ in range(3):
        for kind in (r.CreateSession, r.WatchKey):
            yield from _until(play, kind)
            play.on(play.now, kind, o.Throttled("429"))
        yield play


# --- semaphores ----------------------------------------------------------------------------------


def takes_a_slot() -> Iterator[Play]:
    """Join the line, take a slot, and leave."""
    play = slots.waiting()
    yield play
    play.on(0.2, r.WatchSlots, slots.view("o1", "o2", "o3", at=slots.lock("o1", "o2", "o3")))
    yield play
    play.on(0.3, r.JoinSemaphore, o.SlotWritten(o.KeyIndexes(50, 50, 1), None))
    yield play
    line = slots.view("o1", "o2", "s", at=slots.lock("o1", "o2", index=70), index=70)
    play.on(0.4, r.WatchSlots, line)
    yield from _until(play, r.TakeSlot)
    play.on(play.now, r.TakeSlot, o.LostRace())
    yield from _until(play, r.ReadSlots)
    play.on(play.now, r.ReadSlots, line)
    yield from _until(play, r.TakeSlot)
    play.on(play.now, r.TakeSlot, slots.TAKEN)
    yield play
    play.happens(play.now, e.HookEnded(play.last(a.StartHook), ok=True))
    play.happens(play.now, e.SettingsChanged("n", replace(play.contender.settings, value=b"new")))
    yield from _until(play, r.Rewrite)
    play.on(play.now, r.Rewrite, o.Done())
    play.happens(play.now, e.StepDownAsked("n", 5.0))
    play.happens(play.now, e.HookEnded(play.last(a.StartHook), ok=True))
    yield from _until(play, r.LeaveSemaphore)
    play.on(play.now, r.LeaveSemaphore, o.LostRace())
    yield from _until(play, r.ReadSlots)


def misses_a_holder() -> Iterator[Play]:
    """Meet a holder whose key the list does not show."""
    play = slots.in_line(slots.view("o1", "o2", at=slots.lock("o1", "o2", "o3")))
    play.on(0.4, r.WatchSlots, slots.view("o1", "o2", "s", at=slots.lock("o1", "o2", "o3"), index=62))
    yield from _until(play, r.ReadKey)


def leaves_the_line() -> Iterator[Play]:
    """Stop the process while an attempt has no answer."""
    play = slots.full()
    play.happens(0.5, e.StopAsked())
    yield from _until(play, r.LeaveSemaphore)


def _until(play: Play, kind: type[r.Request]) -> Iterator[Play]:
    """Let time go by until a request of this kind is under way; other requests have no answer."""
    for _ in range(100):
        if any(isinstance(request, kind) for request in play.under_way):
            yield play
            return
        ends = [request.at + request.timeout_s for request in play.under_way]
        now = max(play.now, min([play.deadline, *ends]))
        over = [request for request in play.under_way if request.at + request.timeout_s <= now]
        play.happens(now, e.Answered(over[0], SILENCE) if over else e.Tick())
        yield play
    raise AssertionError(f"no {kind.__name__}: {play.under_way}")


STORIES: tuple[Story, ...] = (
    begins,
    leads,
    guards,
    steps_down,
    is_paused_amid_a_try,
    stops_amid_a_try,
    stops_amid_a_create,
    observes,
    adopts,
    is_in_maintenance,
    is_named,
    is_throttled,
    takes_a_slot,
    misses_a_holder,
    leaves_the_line,
)
