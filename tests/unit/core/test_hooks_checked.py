"""A node whose hooks cannot start takes over nothing, and such a holder goes on leading."""

from dataclasses import replace

from supervisor.core import actions as a
from supervisor.core import events as e
from supervisor.core import outcomes as o
from supervisor.core import requests as r
from supervisor.core.contender.creation import contender_of, new_contender
from supervisor.core.contender.lifecycle import depart
from supervisor.core.contenders import Contenders, Successor
from supervisor.core.settings import ItemSettings, Wanted
from tests.unit.core import play as p
from tests.unit.core.slot_play import EMPTY, full, semaphore

MISSING = a.Fault("down", "no such program /down", "install it")
LOCKED = a.Fault("up", "/up is not executable", "chmod +x /up")


def checked(*faults: a.Fault) -> e.HooksChecked:
    return e.HooksChecked("n", faults)


def unchecked(settings: ItemSettings | None = None, record: a.Record = a.EMPTY_RECORD) -> p.Play:
    """Play an item as the daemon begins it: its hooks have not been checked yet."""
    play = p.Play(settings or p.contender())
    wanted = Wanted(settings or p.contender(), spread=0.0, unchecked=True)
    play.contender = contender_of(wanted, instance="i", now=0.0, record=record)
    return play


def beside_a_free_key() -> p.Play:
    play = unchecked()
    play.does(0.0, "create, watch 0 consistently")
    play.does(0.1, p.CREATE, o.Created("s"), "")
    play.does(0.2, p.WATCH, p.FREE, "watch 5")
    return play


def test_a_node_whose_hook_cannot_start_is_ineligible_until_all_can() -> None:
    play = beside_a_free_key()
    play.hears(0.3, checked(MISSING, LOCKED), "destroy s, ineligible, cannot start down, up")
    play.hears(1.0, checked(MISSING), "cannot start down")
    play.hears(1.1, checked(MISSING), "")
    play.passes(20.0)
    assert not play.times(p.ACQUIRE)
    play.hears(20.0, checked(), "create, waiting, all can start")
    play.does(20.1, p.CREATE, o.Created("t"), "read")
    play.does(20.2, p.READ, p.FREE, "acquire t")


def test_a_holder_whose_hook_cannot_start_goes_on_leading_and_reports_the_fault() -> None:
    play = p.holding()
    play.hears(2.0, checked(MISSING), "cannot start down as holder")
    play.passes(60.0)
    assert play.role == "holding" and not play.times(p.RELEASE)
    play.hears(60.0, checked(), "all can start as holder")
    assert play.role == "holding"


def test_after_its_tenure_a_node_with_a_fault_does_not_contend() -> None:
    play = p.holding()
    play.hears(2.0, checked(LOCKED), "cannot start up as holder")
    play.happens(3.0, e.StepDownAsked("n", 1.0))
    play.ends(3.1, "release s, ineligible")
    play.on(3.2, p.RELEASE, o.Done())
    play.passes(30.0)
    assert play.role == "ineligible" and len(play.times(p.ACQUIRE)) == 1


def test_an_adoption_does_not_wait_for_the_check_of_the_hooks() -> None:
    left = a.Record(a.Point.HOLDING, "k", "s", 7, 3, 2, -1.0, leader=b"me")
    play = unchecked(record=left)
    play.happens(0.0, e.Tick())
    play.on(0.1, p.RENEW, o.SessionAlive())
    play.on(0.1, p.READ, p.OURS)
    assert play.role == "holding" and play.contender.faults is None
    play.hears(0.2, checked(MISSING), "cannot start down as holder")
    assert play.role == "holding"


def test_an_observer_ignores_faults_of_hooks() -> None:
    play = unchecked(p.contender(contend=False, on_acquire=(), on_lose=()))
    assert play.contender.faults == ()
    play.happens(0.0, e.Tick())
    play.hears(0.1, checked(MISSING), "")
    assert play.role == "observer"


def test_a_waiter_whose_hook_cannot_start_leaves_the_line() -> None:
    """A waiter that may not take a slot would keep the waiters behind it waiting."""
    play = full()
    play.happens(1.0, checked(MISSING))
    assert play.times(r.LeaveSemaphore) == [1.0] and play.role == "ineligible"


def test_a_slot_is_taken_once_all_hooks_are_known_to_start() -> None:
    play = unchecked(semaphore())
    play.happens(0.0, e.Tick())
    play.on(0.1, p.CREATE, o.Created("s"))
    assert play.on(0.2, r.WatchSlots, EMPTY) and not play.times(r.TakeSlot) + play.times(r.JoinSemaphore)
    assert play.happens(0.3, checked())
    assert play.times(r.TakeSlot) + play.times(r.JoinSemaphore)


def test_changed_hooks_are_checked_before_the_next_attempt() -> None:
    play = beside_a_free_key()
    play.happens(0.25, e.HooksChecked("n", (MISSING,)))
    play.does(0.26, p.DESTROY, o.Done(), "")
    settings = replace(play.contender.settings, on_lose=())
    play.hears(0.3, e.SettingsChanged("n", settings, unchecked=True), "create, waiting")
    play.does(0.35, p.CREATE, o.Created("t"), "")
    assert not play.times(p.ACQUIRE)
    play.hears(0.4, checked(), "acquire t, all can start")


def test_a_holder_with_changed_hooks_goes_on_before_they_are_checked() -> None:
    play = p.holding()
    settings = replace(play.contender.settings, on_acquire=())
    play.happens(2.0, e.SettingsChanged("n", settings, unchecked=True))
    assert play.role == "holding" and play.contender.settings == settings


def test_a_fault_found_before_a_successor_begins_is_kept_for_it() -> None:
    settings = p.contender(on_lose=())
    left = a.Record(a.Point.SESSION, "k", "old")
    before = depart(new_contender(p.contender(), spread=0.5, instance="i", record=left, now=0.0), 0.0)
    heir = contender_of(Wanted(settings, spread=0.0, unchecked=True), instance="i", now=0.0)
    node = Contenders([before], [Successor(heir, frozenset({"n"}))])
    node.step(checked(MISSING), 0.1)
    assert node.not_begun["n"].faults == (MISSING,) and not node.by_name["n"].faults
    assert node.by_name["n"].departing


def test_a_reload_has_the_hooks_of_changed_items_checked() -> None:
    begun = contender_of(Wanted(p.contender(), spread=0.0), instance="i", now=0.0)
    node = Contenders([begun])
    node.step(e.Tick(), 0.0)
    node.step(e.ConfigLoaded((Wanted(p.contender(), spread=0.0, unchecked=True),), "j"), 1.0)
    assert node.by_name["n"].faults == (), "nothing has changed"
    changed = p.contender(on_lose=())
    node.step(e.ConfigLoaded((Wanted(changed, spread=0.0, unchecked=True),), "k"), 2.0)
    assert node.by_name["n"].faults is None
    node.step(checked(), 2.1)
    assert node.by_name["n"].faults == ()
