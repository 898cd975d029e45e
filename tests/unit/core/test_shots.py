"""Several elections of one lost machine: one run of the fence serves every guard behind its boot."""

import random
from collections.abc import Callable

import pytest

from supervisor.core import actions as a
from supervisor.core import events as e
from supervisor.core import outcomes as o
from supervisor.core import requests as r
from supervisor.core.claim.guard import GuardEnd
from supervisor.core.claim.notes import Note
from supervisor.core.claim.record import State, TenureRecord
from supervisor.core.contender.creation import new_contender
from supervisor.core.contenders import Contenders
from supervisor.core.frozen import replace
from supervisor.core.machines.tenure import Phase
from supervisor.core.settings import ElectionSettings, Fence, Place
from tests.unit.core import play as p

FENCE = Fence(p.hook("fence", 20.0, retries=1000), target="here", after_s=1.0, exclusive=True)
LOST = Place("machine", "lost", "boot-1", "journal")
ALIVE = Place("machine", "lost", "boot-2", "journal")
HERE = Place("ours", "here", "boot-9", "journal")
TOKEN = 100  # of the first acquire here; each further one is larger by 10


def record(place: Place = LOST, token: int = 7, target: str = "bmc-lost") -> TenureRecord:
    return TenureRecord("rival", target=target, node="lost", place=place, token=token)


class Document:
    """The notes of a fleet. ``instead``: what Consul answers to all about them. None: nothing special."""

    def __init__(self, *notes: Note) -> None:
        self.notes, self.index = notes, 1 if notes else 0
        self.instead: o.Outcome | None = None
        self.asked: list[r.Request] = []

    def answer(self, request: r.ReadNotes | r.WriteNotes) -> o.Outcome:
        self.asked.append(request)
        if self.instead is not None:
            return self.instead
        if isinstance(request, r.ReadNotes):
            late_s = 0.001 * (len(self.asked) % 7)  # a clock is read at each exchange
            return o.NotesShown(tuple(replace(each, at=each.at + late_s) for each in self.notes), self.index)
        if request.index != self.index:
            return o.LostRace()
        self.notes, self.index = request.notes, self.index + 1
        return o.Done()


class Room:
    """Elections whose former holders were on a machine that is lost; Consul answers everything at once.

    began, ended: the runs of the fence, as (time, item) and as (time, item, ok).
    """

    def __init__(
        self,
        records: dict[str, TenureRecord],
        fences: dict[str, Fence] | None = None,
        held: str = "",
        *,
        here: Place = HERE,
        document: Document | None = None,
        token: int = TOKEN,
    ) -> None:
        self.records, self.now, self.fences, self.held = records, 0.0, fences or {}, held
        self.document = document or Document()
        self.began: list[tuple[float, str]] = []
        self.acting: dict[str, float] = {}
        self.running: list[a.StartHook] = []
        self.killed: list[a.StartHook] = []
        self.token = token
        self.claims: dict[str, TenureRecord] = {}  # by item: what this node has written over the record
        self.watch: r.Request | None = None  # of the key that is still held
        self.late, self.looks = False, list[r.Request]()  # looks at the record that get no answer yet
        made = [
            new_contender(self.settings(name), spread=0.0, instance="i", now=0.0, place=here)
            for name in records
        ]
        self.contenders = Contenders([replace(each, faults=()) for each in made])
        self.happens(e.Tick())

    def settings(self, name: str) -> ElectionSettings:
        fence = self.fences.get(name, FENCE)
        return replace(p.contender(fence=fence), name=name, key=name)

    def happens(self, event: e.Event) -> None:
        """Give the event, and answer all that follows."""
        actions = list(self.contenders.decide(event, self.now))
        for action in actions:
            if isinstance(action, a.WriteRecord):
                self.happens(e.RecordWritten(action))
            elif isinstance(action, a.StartHook):
                self.running.append(action)
                if action.context.event == "fence":
                    self.began.append((self.now, action.context.name))
                else:
                    self.acting[action.context.name] = self.now
                    self.end(action)
            elif isinstance(action, a.KillHook):
                self.killed.append(action.started)
                self.end(action.started, ok=False)
            elif isinstance(action, r.Request):
                if (answer := self.answer(action)) is not None:
                    self.happens(e.Answered(action, answer))

    def end(self, started: a.StartHook, *, ok: bool = True) -> None:
        self.running.remove(started)
        self.happens(e.HookEnded(started, ok))

    def answer(self, request: r.Request) -> o.Outcome | None:
        match request:
            case r.HintKey():
                return None
            case r.ReadNotes() | r.WriteNotes():
                return self.document.answer(request)
            case r.CreateSession(item=item):
                return o.Created(f"s-{item}")
            case r.RenewSession():
                return o.SessionAlive("here")
            case r.WatchTenure(index=0) if self.late:
                self.looks.append(request)
                return None
            case r.WatchTenure(item=item, index=index):
                return None if index else o.TenureShown(6, 6, self.claims.get(item, self.records[item]))
            case r.Rewrite(item=item, record=ours):
                if ours is not None:
                    self.claims[item] = ours
                return o.Done()
            case r.Release(item=item):
                self.claims.pop(item, None)
                return o.Done()
            case r.Acquire():
                self.token += 10
                return o.Won(3, self.token, 4)
            case r.ReadKey(item=item) | r.WatchKey(item=item):
                tenure = self.contenders.by_name[item].tenure
                free = o.KeyView(5, None, b"", 3, 5, 1, has_record_flags=True)
                if item == self.held and isinstance(request, r.WatchKey) and request.index:
                    self.watch = request
                    return None
                if item == self.held:
                    return replace(free, index=4, modify_index=4, session="rival")
                if tenure is None:
                    return None if isinstance(request, r.WatchKey) and request.index else free
                if isinstance(request, r.WatchKey):
                    return None
                return replace(
                    free, index=tenure.token, session=tenure.session, modify_index=tenure.token, lock_index=4
                )
            case r.ReadSession():
                return o.SessionInfo(0.0)
            case _:
                return o.Done()

    def passes(self, until: float) -> None:
        """Let time go by."""
        while (due_at := max(self.now, self.contenders.deadline())) <= until:
            self.now = due_at
            self.happens(e.Tick())
        self.now = until

    def fenced(self) -> set[str]:
        """Return the items whose guard has ended by the fence."""
        ends = {name: each.tenure.previous for name, each in self.contenders.by_name.items() if each.tenure}
        return {name for name, previous in ends.items() if previous and previous.end == GuardEnd.FENCED}


def items(count: int) -> dict[str, TenureRecord]:
    return {f"n{number:02}": record() for number in range(count)}


def test_forty_elections_of_a_lost_machine_are_one_run_and_act_at_once() -> None:
    room = Room(items(40))
    room.passes(5.0)
    ((begun_at, name),) = room.began
    assert not room.acting
    room.now = 6.0
    room.end(room.running[0])
    assert room.fenced() == set(room.records) and set(room.acting.values()) == {6.0}
    assert len(room.began) == 1 and begun_at < 2.0 and name in room.records


def test_a_run_that_fails_is_repeated_by_the_same_guard_and_not_by_each() -> None:
    room = Room(items(5))
    room.passes(3.0)
    for _ in range(4):
        room.end(room.running[0], ok=False)
        room.passes(room.now + 9.0)
    times = [at for at, _ in room.began]
    assert len({name for _, name in room.began}) == 1
    pauses = [later - sooner for sooner, later in zip(times, times[1:], strict=False)]
    assert len(times) == 5 and pauses == sorted(pauses) and not room.acting


def test_a_machine_that_nobody_can_identify_shares_no_success() -> None:
    unknown = record(replace(LOST, machine="", boot=""))
    room = Room({"a": unknown, "b": unknown})
    room.passes(3.0)
    assert len(room.began) == 2
    room.end(room.running[0])
    assert len(room.acting) == 1 and len(room.running) == 1


@pytest.mark.parametrize("ok", [True, False])
@pytest.mark.parametrize("why", ["confirmed", "steps down"])
def test_a_run_goes_on_without_its_guard_while_another_one_waits_for_it(why: str, ok: bool) -> None:
    room = Room(items(3))
    room.passes(3.0)
    first = room.began[0][1]
    room.happens(e.ConfirmOffAsked(first) if why == "confirmed" else e.StepDownAsked(first, 60.0))
    assert not room.killed and set(room.acting) == ({first} if why == "confirmed" else set())
    room.passes(4.0)
    assert len(room.began) == 1
    room.end(room.running[0], ok=ok)
    others = set(room.records) - {first}
    assert (others <= set(room.acting)) == ok
    room.passes(8.0)
    assert len(room.began) == (1 if ok else 2)


def test_the_run_is_killed_when_the_last_guard_that_waits_for_it_has_ended() -> None:
    room = Room(items(3))
    room.passes(3.0)
    first = room.began[0][1]
    for name in (first, *(each for each in room.records if each != first)):
        assert not room.killed
        room.happens(e.ConfirmOffAsked(name))
    assert [started.context.name for started in room.killed] == [first] and not room.running
    assert set(room.acting) == set(room.records)


def test_a_daemon_that_stops_kills_a_run_that_goes_on() -> None:
    room = Room(items(2))
    room.passes(3.0)
    room.happens(e.ConfirmOffAsked(room.began[0][1]))
    room.happens(e.StopAsked())
    room.passes(4.0)
    assert not room.running and room.contenders.stopped


@pytest.mark.parametrize(
    "other",
    [
        record(ALIVE),
        record(replace(LOST, machine="")),
        record(replace(LOST, boot="")),
        record(replace(LOST, host="another")),
        record(target="pdu-lost"),
    ],
    ids=["boot", "no id", "no boot", "host", "target"],
)
def test_another_boot_machine_or_target_has_a_run_of_its_own(other: TenureRecord) -> None:
    room = Room({"a": record(), "b": other})
    room.passes(3.0)
    assert {name for _, name in room.began} == {"a", "b"}
    room.end(next(each for each in room.running if each.context.name == "a"))
    assert room.fenced() == {"a"} and set(room.acting) == {"a"}


def test_another_command_for_the_same_machine_has_a_run_of_its_own() -> None:
    room = Room(items(2), {"n01": replace(FENCE, hook=p.hook("other", 9.0))})
    room.passes(3.0)
    assert len(room.began) == 2


def test_a_guard_that_begins_later_ends_by_the_shot_of_before() -> None:
    """A tenure that began behind that shot is another matter, because a machine's memory may be put back."""
    room = Room(items(2), held="n01")
    room.passes(3.0)
    room.end(room.running[0])
    assert set(room.acting) == {"n00"}
    room.held, shown = "", o.KeyView(5, None, b"", 3, 5, 1, has_record_flags=True)
    assert room.watch is not None
    room.happens(e.Answered(room.watch, shown))
    room.passes(room.now + 0.1)
    assert len(room.began) == 1 and set(room.acting) == {"n00", "n01"}


@pytest.mark.parametrize(("token", "runs"), [(7, 1), (TOKEN + 10, 2), (TOKEN + 500, 2), (0, 2)])
def test_a_shot_says_nothing_of_a_tenure_that_began_after_its_guard(token: int, runs: int) -> None:
    room = Room({"a": record(), "b": record(token=token)})
    room.passes(3.0)
    room.end(room.running[0])
    room.passes(room.now + 5.0)
    assert len(room.began) == runs
    assert ("b" in room.acting) == (runs == 1)


def test_a_guard_whose_own_time_has_not_come_does_not_shoot_and_is_ended_by_another() -> None:
    stopping = replace(record(), state=State.STOPPING, lose_time_s=10.0)
    room = Room({"a": stopping, "b": record()})
    room.passes(3.0)
    assert [name for _, name in room.began] == ["b"]
    room.end(room.running[0])
    assert room.fenced() == {"a", "b"}


def _step(room: Room, draw: random.Random) -> None:
    """Let one of all things happen."""
    names = sorted(room.records)
    name = draw.choice(names)
    moves: list[Callable[[], None]] = [
        lambda: room.passes(room.now + draw.choice([0.1, 1.0, 4.0])),
        lambda: room.happens(e.ConfirmOffAsked(name)),
        lambda: room.happens(e.StepDownAsked(name, 1.0)),
        lambda: room.happens(e.Stalled(2.0)),
        lambda: room.end(draw.choice(room.running), ok=draw.random() < 0.3) if room.running else None,
    ]
    draw.choice(moves)()


@pytest.mark.parametrize("seed", range(40))
def test_in_any_order_one_run_at_a_time_and_nobody_acts_before_its_machine_is_off(seed: int) -> None:
    draw = random.Random(seed)
    places = [LOST, ALIVE, replace(LOST, host="another")]
    room = Room({f"n{number}": record(draw.choice(places), draw.choice([7, 130])) for number in range(6)})
    for _ in range(60):
        _step(room, draw)
        boots = [room.records[each.context.name].place for each in room.running]
        assert len(boots) == len(set(boots)), "two runs for one boot at once"
    room.records = {name: replace(each, state=State.ENDED) for name, each in room.records.items()}
    for _ in range(40):
        for each in [*room.running]:
            room.end(each)
        room.passes(room.now + 20.0)
    phases = {name: each.tenure and each.tenure.phase for name, each in room.contenders.by_name.items()}
    assert set(phases.values()) == {Phase.HOLDING}, phases
