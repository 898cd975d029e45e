"""The numbers of slots: no two holders have the same one, and a tenure keeps its own."""

import pytest

from supervisor.core import actions as a
from supervisor.core import events as e
from supervisor.core import requests as r
from supervisor.core.contender.creation import new_contender
from supervisor.core.machines.record import tenure_from
from tests.unit.core import slot_play as s


@pytest.mark.parametrize(
    ("numbers", "ours"),
    [
        ({"o1": 0, "o2": 1}, 2),
        ({"o1": 2, "o2": 0}, 1),
        ({"o1": 7, "o2": 8}, 0),  # of a larger limit than today's
        ({"o1": 0}, None),  # o2 may have any number: it is `consul lock`, or an older release
        ({}, None),
        ({"o1": None, "o2": 1}, 0),  # o1 has said that it has none
    ],
)
def test_a_slot_gets_the_smallest_number_that_no_holder_has_or_may_have(
    numbers: dict[str, int | None], ours: int | None
) -> None:
    play = s.full()
    play.on(1.0, s.WATCH, s.view("o1", "o2", "s", at=s.lock("o1", "o2", numbers=numbers)))
    written: dict[str, int | None] = dict(play.last(s.TAKE).slot_record.numbers)
    assert written.items() >= numbers.items() and written["s"] == ours


def test_the_number_of_a_vanished_holder_stays_with_its_slot_for_the_prune_delay() -> None:
    numbers = {"o1": 0, "o2": 1, "o3": 2}
    play = s.full()
    shown = s.view("o2", "o3", "s", at=s.lock("o1", "o2", "o3", numbers=numbers))
    play.on(1.0, s.WATCH, shown)
    play.on(1.0, s.ASK, s.GONE)
    assert not play.times(s.TAKE)
    play.passes(30.9)
    play.happens(31.0, e.Tick())
    for request in [each for each in play.under_way if isinstance(each, s.READ)]:
        play.happens(31.0, e.Answered(request, shown))
    assert dict(play.last(s.TAKE).slot_record.numbers) == {"o2": 1, "o3": 2, "s": 0}


def test_the_hooks_of_a_tenure_get_its_number_whatever_the_record_says_later() -> None:
    play = s.holding()
    assert play.last(a.StartHook).context.slot == 0
    play.on(2.0, s.WATCH, s.view("s", at=s.lock("s", index=70), index=70))
    play.on(3.0, s.WATCH, s.view("s", at=s.lock("s", index=71, numbers={"s": 2}), index=71))
    play.happens(4.0, e.StopAsked())
    assert (play.last(a.StartHook).context.event, play.last(a.StartHook).context.slot) == ("lose", 0)


def test_who_leaves_takes_its_number_along_and_leaves_the_others_theirs() -> None:
    play = s.holding()
    numbers = {"s": 0, "o1": 1}
    play.on(2.0, s.WATCH, s.view("s", "o1", at=s.lock("s", "o1", index=70, numbers=numbers), index=70))
    play.happens(3.0, e.StopAsked())
    play.happens(4.0, e.HookEnded(play.last(a.StartHook), ok=True))
    assert play.last(s.LEAVE).slot_record == r.SlotRecord(3, ("o1",), 30.0, numbers=(("o1", 1),))


def test_a_process_that_adopts_a_tenure_keeps_its_number() -> None:
    play = s.holding()
    record = play.contender.record
    assert record.slot == 0
    tenure = tenure_from(record, 5.0)
    assert tenure is not None and tenure.slot == 0
    adopting = new_contender(s.semaphore(), spread=0.0, instance="2", record=record, now=5.0)
    assert adopting.record.slot == 0


def test_a_tenure_of_an_older_release_has_no_number() -> None:
    record = a.Record(a.Point.HOLDING, "p/.lock", "s", 61, 50, 1, 4.0, leader=b"me")
    tenure = tenure_from(record, 5.0)
    assert tenure is not None and tenure.slot is None
