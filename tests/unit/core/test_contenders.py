"""All contenders of a process: each event reaches the right one, and the earliest deadline is known."""

from dataclasses import replace
from math import inf
from typing import Any

from supervisor.core import actions as a
from supervisor.core import events as e
from supervisor.core import outcomes as o
from supervisor.core import requests as req
from supervisor.core.contender.creation import new_contender
from supervisor.core.contender.lifecycle import depart
from supervisor.core.contenders import Contenders, Successor
from supervisor.core.machines.session import Stage
from tests.unit.core.play import RIVAL, contender, ended, hook


def node(*names: str, spread: float = 0.0, **more: Any) -> Contenders:
    settings = [replace(contender(**more), name=name, key=name) for name in names]
    return Contenders([new_contender(each, spread=spread, instance="i") for each in settings])


def names_of(actions: list[a.Action]) -> list[str]:
    return [action.item for action in actions if isinstance(action, req.Request)]


def test_every_election_begins_with_the_first_tick() -> None:
    both = node("one", "two")
    assert both.deadline() == -inf
    assert names_of(both.step(e.Tick(), 0.0)) == ["one", "one", "two", "two"]


def test_an_answer_reaches_the_election_that_sent_the_request() -> None:
    both = node("one", "two")
    begun = both.step(e.Tick(), 0.0)
    create = next(r for r in begun if isinstance(r, req.CreateSession) and r.item == "two")
    untouched = both.by_name["one"]
    both.step(e.Answered(create, o.Created("s")), 0.1)
    assert both.by_name["two"].session.id == "s"
    assert both.by_name["one"] is untouched


def test_the_end_of_a_hook_reaches_the_election_that_began_it() -> None:
    both = node("one", "two", contend=False, on_acquire=(), on_lose=(), on_change=(hook("told"),))
    begun = both.step(e.Tick(), 0.0)
    started = [
        action
        for watch in begun
        if isinstance(watch, req.WatchKey)
        for action in both.step(e.Answered(watch, RIVAL), 0.1)
        if isinstance(action, a.StartHook)
    ]
    both.step(e.HookEnded(started[1], ok=True), 0.2)
    assert both.by_name["two"].change.idle and not both.by_name["one"].change.idle


def has_session(both: Contenders, create: req.CreateSession, at: float) -> None:
    """Answer that the session was created, and that it is as requested."""
    for action in both.step(e.Answered(create, o.Created(f"s-{create.item}")), at):
        if isinstance(action, req.RenewSession):
            both.step(e.Answered(action, o.SessionAlive()), at)


def test_a_tick_reaches_the_elections_whose_deadline_has_come() -> None:
    """The sessions are created one second apart, and so are their renewals."""
    both = node("one", "two")
    begun = both.step(e.Tick(), 0.0)
    for create, at in zip([r for r in begun if isinstance(r, req.CreateSession)], (0.0, 1.0), strict=True):
        has_session(both, create, at)
    assert both.deadline() == 4.5
    assert names_of(both.step(e.Tick(), 4.5)) == ["one"]
    assert both.deadline() == 5.5
    assert names_of(both.step(e.Tick(), 5.5)) == ["two"]
    assert both.deadline() == inf


def test_a_late_tick_reaches_each_election_once() -> None:
    both = node("one", "two")
    begun = both.step(e.Tick(), 0.0)
    for create in [r for r in begun if isinstance(r, req.CreateSession)]:
        has_session(both, create, 0.1)
    assert names_of(both.step(e.Tick(), 60.0)) == ["one", "two"]


def test_a_deadline_that_moved_away_and_back_is_met() -> None:
    one = node("one", contend=False, on_acquire=(), on_lose=())
    watch = one.step(e.Tick(), 0.0)[0]
    assert isinstance(watch, req.WatchKey)
    one.step(e.Answered(watch, o.Unknown("")), 1.0)
    assert one.deadline() == 1.5
    (again,) = one.step(e.Tick(), 1.5)
    assert isinstance(again, req.WatchKey)
    assert one.deadline() == inf
    one.step(e.Answered(again, o.Denied("")), 1.6)
    assert one.deadline() == 2.1


def test_a_stop_reaches_all_elections_and_is_complete_when_all_have_stopped() -> None:
    both = node("one", "two")
    begun = both.step(e.Tick(), 0.0)
    assert both.step(e.StopAsked(), 1.0) == []
    creates = [r for r in begun if isinstance(r, req.CreateSession)]
    both.step(e.Answered(creates[0], o.Unknown("")), 2.0)
    assert not both.stopped
    both.step(e.Answered(creates[1], o.Unknown("")), 2.1)
    assert both.stopped and both.deadline() == inf


def test_the_list_of_deadlines_does_not_grow_with_the_events() -> None:
    """An agent may be away for months; each failed watch moves the deadline there and back."""
    observer = node("observer", contend=False, on_acquire=(), on_lose=())
    waiter = node("waiter", ttl_s=86400.0)
    for one in (observer, waiter):
        for request in one.step(e.Tick(), 0.0):
            if isinstance(request, req.CreateSession):
                one.step(e.Answered(request, o.Created("s")), 0.0)
            else:
                watch = request
        for second in range(1000):
            assert isinstance(watch, req.WatchKey)
            one.step(e.Answered(watch, o.Unknown("")), float(second))
            one.deadline()
            watch = one.step(e.Tick(), second + 0.5)[0]
            one.deadline()
        assert len(one._due) <= 2


def test_spread_keeps_a_fleet_from_retrying_in_step() -> None:
    retries = []
    for spread in (0.0, 0.5):
        one = node("one", spread=spread)
        create = one.step(e.Tick(), 0.0)[0]
        assert isinstance(create, req.CreateSession)
        one.step(e.Answered(create, o.Unknown("")), 1.0)
        retries.append(one.deadline())
    assert retries == [1.5, 1.75]


def two_keys() -> Contenders:
    """Return elections n and m of one key, which depart; "new" takes over the key, and n gets another one."""
    record = a.Record(a.Point.LOSING, "k", "s", 7, 3, 1, 0.0, leader=b"me")
    before = [
        depart(
            new_contender(replace(contender(), name=name), spread=0.0, instance="i", record=record, now=1.0),
            1.0,
        )
        for name in ("n", "m")
    ]
    after = [
        Successor(new_contender(replace(contender(), name="new"), spread=0.5, instance="i"), frozenset("nm")),
        Successor(new_contender(contender(), spread=0.5, instance="i"), frozenset("n")),
    ]
    return Contenders(before, after)


def test_a_renamed_election_begins_when_all_elections_of_its_key_have_wound_up() -> None:
    node = two_keys()
    assert node.begins_after("new") == {"n", "m"}
    winds_up(node, "n", 1.0)
    assert "new" not in node.by_name and node.begins_after("new") == {"m"}
    winds_up(node, "m", 5.0)
    assert node.by_name["new"].spread == 0.5 and not node.begins_after("new")
    assert node.by_name["new"].session.stage is Stage.CREATING


def test_successors_inherit_a_pause_of_any_departing_predecessor() -> None:
    node = two_keys()
    node.step(e.PauseAsked("n"), 1.0)
    winds_up(node, "n", 1.0)
    assert node.by_name["n"].paused and node.by_name["n"].role is not a.Role.STOPPED
    assert not node.by_name["m"].paused
    winds_up(node, "m", 5.0)
    assert node.by_name["new"].paused


def winds_up(node: Contenders, name: str, now: float) -> None:
    """End this election's on_lose, and answer everything that follows with success."""
    node.step(e.Tick(), now)
    tenure = node.by_name[name].tenure
    assert tenure is not None and tenure.hooks.running is not None
    ended(node, node.step(e.HookEnded(tenure.hooks.running, ok=True), now), now)
