"""Which runs of the fence may begin: the fleet's notes of shots, and ``fence_limit``."""

import pytest

from supervisor.core import events as e
from supervisor.core import outcomes as o
from supervisor.core import requests as r
from supervisor.core.claim.grants import AGAIN_S, ASK_S, SILENT_S, Grants, Want
from supervisor.core.claim.notes import Boot, Note, NoteState
from supervisor.core.claim.record import State
from supervisor.core.frozen import replace
from supervisor.core.settings import FenceLimit, Place
from tests.unit.core import play as p
from tests.unit.core.test_shots import FENCE, HERE, TOKEN, Document, Room, items, record

TOLD = replace(FENCE, notes="fleet/shots")
THERE = Place("third", "there", "boot-5", "journal")
OTHERS = Note("machine", "lost", "boot-1", "bmc-lost", "there", 0.0, 50, 30.0, NoteState.DONE, "fence")


def room(count: int, document: Document, *, here: Place = HERE, token: int = TOKEN) -> Room:
    names = items(count)
    return Room(names, dict.fromkeys(names, TOLD), here=here, document=document, token=token)


def test_of_two_survivors_one_shoots_and_both_act() -> None:
    document = Document()
    ours, theirs = room(3, document), room(3, document, here=THERE, token=TOKEN + 5)
    for _ in range(12):
        for each in (ours, theirs):
            each.passes(each.now + 0.25)
    assert len(ours.began) == 1 and not theirs.began
    ours.end(ours.running[0])
    theirs.passes(theirs.now + 0.3)
    assert len(ours.acting) == len(theirs.acting) == 3 and not theirs.began
    assert [each.state for each in document.notes] == [NoteState.DONE]
    theirs.passes(theirs.now + 1.0)
    asked = len(document.asked)
    for each in (ours, theirs):
        each.passes(each.now + 60.0)
    assert len(document.asked) == asked, "at rest nobody reads it"


def test_a_survivor_whose_fence_fails_leaves_the_next_turn_to_another() -> None:
    document = Document()
    ours, theirs = room(1, document), room(1, document, here=THERE)
    for each in (ours, theirs):
        each.passes(2.5)
    assert (len(ours.began), len(theirs.began)) == (1, 0)
    ours.end(ours.running[0], ok=False)
    theirs.passes(theirs.now + 0.3)
    assert len(theirs.began) == 1
    ours.passes(ours.now + 10.0)
    assert len(ours.began) == 1, "one at a time"
    theirs.end(theirs.running[0])
    ours.passes(ours.now + 0.3)
    assert ours.acting and theirs.acting and len(ours.began) == 1


def test_a_survivor_that_dies_in_the_middle_is_waited_for_no_longer_than_its_methods_take() -> None:
    document = Document()
    dead, ours = room(1, document, here=THERE), room(1, document)
    dead.passes(2.5)
    assert dead.began
    takes_s = document.notes[0].takes_s
    ours.passes(1.1 + takes_s - 0.5)
    assert not ours.began
    ours.passes(1.1 + takes_s + 1.0)
    assert len(ours.began) == 1


@pytest.mark.parametrize(
    "note",
    [
        replace(OTHERS, boot="boot-0"),
        replace(OTHERS, machine="another"),
        replace(OTHERS, host="clone"),
        replace(OTHERS, target="outlet-9"),
        replace(OTHERS, token=7),
        replace(OTHERS, token=0),
        replace(OTHERS, state=NoteState.FAILED),
    ],
    ids=["boot", "machine", "host", "target", "of before", "no token", "failed"],
)
def test_a_note_of_anything_else_ends_no_guard(note: Note) -> None:
    """Of another boot, a restored snapshot, a clone: they are as if nobody had shot."""
    survivor = room(2, Document(note))
    survivor.passes(3.0)
    assert len(survivor.began) == 1 and not survivor.acting


def test_a_note_of_this_very_boot_ends_the_guard_without_a_run() -> None:
    survivor = room(2, Document(OTHERS))
    survivor.passes(3.0)
    assert not survivor.began and survivor.fenced() == set(survivor.records)


def test_a_note_orders_no_shot_and_is_not_read_without_a_guard_that_would_shoot() -> None:
    document = Document(replace(OTHERS, state=NoteState.SHOOTING))
    survivor = Room({"a": record(target="here")}, {"a": TOLD}, document=document)
    survivor.passes(20.0)
    assert not survivor.began and not document.asked


@pytest.mark.parametrize(
    ("instead", "late_s"), [(o.Denied("no"), 0.0), (o.Refused("foreign"), 0.0), (o.Unknown("?"), SILENT_S)]
)
def test_without_the_notes_each_survivor_shoots_once(instead: o.Outcome, late_s: float) -> None:
    document = Document()
    document.instead = instead
    survivor = room(3, document)
    survivor.passes(1.2 + late_s + 0.5)
    assert len(survivor.began) == 1 and survivor.began[0][0] <= 1.2 + late_s + 0.5
    survivor.end(survivor.running[0])
    assert len(survivor.acting) == 3
    survivor.passes(200.0)
    assert len(document.asked) < 300
    survivor.passes(400.0)
    assert survivor.contenders.shots.grants.due_at > 1e9, "nobody tells for ever"


def limited(machines: int, *places: Place) -> Room:
    fence = replace(FENCE, limit=FenceLimit(machines, 600.0))
    records = {f"n{number}": record(place, target=place.host) for number, place in enumerate(places)}
    return Room(records, dict.fromkeys(records, fence))


def six() -> list[Place]:
    return [Place(f"m{number}", f"h{number}", "boot", "journal") for number in range(6)]


def test_two_of_six_machines_are_shot_and_four_waited_for() -> None:
    room = limited(2, *six())
    room.passes(3.0)
    assert len(room.began) == 2
    for each in [*room.running]:
        room.end(each)
    assert len(room.acting) == 2
    waits = [each.guard for each in room.contenders.by_name.values() if each.guard and not each.guard.end]
    assert len(waits) == 4 and all(each.is_limited(FENCE) for each in waits)
    name = next(name for name in room.records if name not in room.acting)
    room.happens(e.ConfirmOffAsked(name))
    assert name in room.acting
    room.passes(100.0)
    assert len(room.began) == 2 and len(room.acting) == 6, "the others have waited for the lease"


def test_a_machine_counts_once_however_often_it_is_tried() -> None:
    room = limited(2, *six()[:2])
    room.passes(3.0)
    for _ in range(6):
        for each in [*room.running]:
            room.end(each, ok=False)
        room.passes(room.now + 4.0)
    assert len({name for _, name in room.began}) == 2 and len(room.began) > 6


def test_the_limit_counts_the_shots_of_other_nodes_and_of_earlier_processes() -> None:
    fence = replace(TOLD, limit=FenceLimit(1, 600.0))
    document = Document(replace(OTHERS, machine="m9", host="h9"))
    of_fleet = Room({"a": record()}, {"a": fence}, document=document)
    of_fleet.passes(5.0)
    assert not of_fleet.began
    restarted = limited(1, *six()[:1])
    restarted.contenders.shots.grants.own = (replace(OTHERS, machine="m9"),)
    restarted.passes(5.0)
    assert not restarted.began
    restarted.contenders.shots.grants.own = (replace(OTHERS, machine="m9", at=-600.0),)
    restarted.passes(12.0)
    assert len(restarted.began) == 1


# --- methods in order -------------------------------------------------------------------------------


def test_methods_are_tried_in_order_and_begin_anew_with_a_back_off() -> None:
    fence = replace(FENCE, hook=p.hook("bmc", 5.0), others=(p.hook("pdu", 5.0), p.hook("outlet", 5.0)))
    room = Room(items(2), dict.fromkeys(items(2), fence))
    room.passes(3.0)
    tried = []
    for _ in range(7):
        tried.append((room.running[0].hook.name, room.now))
        room.end(room.running[0], ok=False)
        room.passes(room.now if room.running else room.contenders.deadline())
    names = [name for name, _ in tried]
    assert names == ["bmc", "pdu", "outlet", "bmc", "pdu", "outlet", "bmc"]
    assert tried[3][1] - tried[2][1] >= 1.0 and tried[6][1] - tried[5][1] >= 2.0
    room.end(room.running[0], ok=True)
    assert room.fenced() == set(room.records)
    tenures = [each.tenure for each in room.contenders.by_name.values()]
    assert {each.previous.method for each in tenures if each and each.previous} == {"pdu after bmc failed"}


def test_the_next_method_belongs_to_the_guard_whose_method_has_failed() -> None:
    """Its look at the record comes late, when others could begin as well, with the first method again."""
    fence = replace(FENCE, hook=p.hook("bmc", 5.0), others=(p.hook("pdu", 5.0),))
    room = Room(items(3), dict.fromkeys(items(3), fence))
    room.passes(3.0)
    room.late = True
    room.end(room.running[0], ok=False)
    looks, room.late = [*reversed(room.looks)], False
    for look in looks:
        if (answer := room.answer(look)) is not None:
            room.happens(e.Answered(look, answer))
    room.passes(room.now + 0.1)
    assert [each.hook.name for each in room.running] == ["pdu"]
    assert {name for _, name in room.began} == {room.running[0].context.name}


# --- found by an attack -----------------------------------------------------------------------------


def test_a_late_failure_does_not_hide_the_success_of_another_node() -> None:
    document = Document()
    slow, quick = room(1, document), room(1, document, here=THERE, token=TOKEN + 5)
    slow.passes(2.5)
    quick.passes(document.notes[0].takes_s + 3.0)
    quick.end(quick.running[0])
    slow.passes(quick.now)
    slow.end(slow.running[0], ok=False)
    slow.passes(slow.now + 2.0)
    assert [each.state for each in document.notes] == [NoteState.DONE]
    assert slow.acting and len(slow.began) == 1


class Refusing(Document):
    """Each write ends in this way, at once."""

    def __init__(self, outcome: o.Outcome) -> None:
        super().__init__()
        self.outcome = outcome

    def answer(self, request: r.ReadNotes | r.WriteNotes) -> o.Outcome:
        return super().answer(request) if isinstance(request, r.ReadNotes) else self.outcome


@pytest.mark.parametrize("outcome", [o.Failed("502"), o.LostRace()])
def test_writes_that_fail_delay_a_shot_no_longer_than_silence(outcome: o.Outcome) -> None:
    document = Refusing(outcome)
    survivor = room(1, document)
    survivor.passes(1.2 + SILENT_S + 0.5)
    assert len(survivor.began) == 1 and len(document.asked) < 45


def test_exchanges_that_hang_delay_a_shot_by_some_seconds() -> None:
    grants, want, now = Grants(), Want("a", TOLD, 1, replace(OTHERS, at=0.0)), 0.0
    grants.want(boot := Boot(*OTHERS.place, ()), want)
    while boot not in grants.granted:
        (request,) = grants.tend(now)
        now += ASK_S
        assert not list(grants.answered(request, o.Unknown("no answer"), now))
        now = max(now, grants.due_at) if boot not in grants.granted else now
    assert SILENT_S <= now <= SILENT_S + ASK_S + AGAIN_S


def test_a_run_that_asks_for_no_notes_does_not_wait_for_a_read_of_them() -> None:
    document, held = Document(), list[r.Request]()

    def hold(request: r.ReadNotes | r.WriteNotes) -> o.Outcome | None:
        held.append(request)
        return None

    document.answer = hold  # type: ignore[assignment, method-assign]
    fences = {"a": TOLD, "b": replace(FENCE, after_s=1.5, limit=FenceLimit(5, 600.0))}
    survivor = Room({"a": record(), "b": record(six()[0], target="t")}, fences, document=document)
    survivor.passes(3.0)
    assert [name for _, name in survivor.began] == ["b"] and len(held) == 1


def test_a_machine_with_two_targets_is_shot_once_by_each_of_them() -> None:
    document = Document()
    records = {"a": record(target="bmc"), "b": record(target="outlet")}
    fences = dict.fromkeys(records, TOLD)
    ours = Room(records, fences, document=document)
    theirs = Room(records, fences, document=document, here=THERE, token=TOKEN + 5)
    for _ in range(12):
        for each in (ours, theirs):
            each.passes(each.now + 0.25)
    assert len(ours.began) + len(theirs.began) == len(document.notes) == 2


def test_a_shot_that_is_noted_and_never_begins_is_told_of() -> None:
    """Its guard ends between the write and its answer."""
    document, held = Document(), list[tuple[r.Request, o.Outcome]]()
    answer = document.answer

    def hold(request: r.ReadNotes | r.WriteNotes) -> o.Outcome | None:
        outcome = answer(request)
        if isinstance(request, r.ReadNotes) or held:
            return outcome
        held.append((request, outcome))
        return None

    document.answer = hold  # type: ignore[assignment, method-assign]
    ours = room(1, document)
    ours.passes(1.5)
    ours.happens(e.ConfirmOffAsked("n00"))
    ours.happens(e.Answered(*held[0]))
    ours.passes(2.0)
    assert [each.state for each in document.notes] == [NoteState.FAILED] and not ours.began


def test_only_a_run_that_has_begun_counts_for_the_limit_and_counts_without_one_as_well() -> None:
    """A reload may bring the limit later; and a machine may say in time that it has ended."""
    room = Room(items(1))
    room.passes(3.0)
    assert len(room.contenders.shots.grants.own) == 1
    said = limited(2, *six()[:2])
    said.late = True
    said.passes(3.0)
    said.late = False
    for look in said.looks:
        ended = replace(said.records[look.item], state=State.ENDED)
        said.happens(e.Answered(look, o.TenureShown(7, 7, ended)))
    said.passes(5.0)
    assert not said.began and not said.contenders.shots.grants.own
