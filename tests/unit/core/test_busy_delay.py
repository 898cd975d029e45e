"""busy_delay: the more locks a node holds, the longer it leaves a free key to others."""

from dataclasses import replace
from typing import Any

import pytest

from supervisor.core import actions as a
from supervisor.core import events as e
from supervisor.core import outcomes as o
from supervisor.core import requests as req
from supervisor.core.contender.creation import new_contender
from supervisor.core.contender.state import Contender
from supervisor.core.contenders import Contenders
from supervisor.core.lock.election import ElectionLock
from supervisor.core.lock.handover import naming
from supervisor.core.settings import ElectionSettings
from tests.unit.core import play as p
from tests.unit.core.slot_play import holding as holding_a_slot

BUSY_S = 1.0
BUSY = {"busy_delay_s": BUSY_S, "on_acquire": (), "on_lose": ()}


class Node:
    """A node with some elections, whose requests are answered by hand."""

    def __init__(self, *settings: ElectionSettings, beside: tuple[Contender, ...] = ()) -> None:
        made = [new_contender(each, spread=0.5, instance="i") for each in settings]
        self.all = Contenders([*made, *beside])
        self.asked: list[req.Request] = []
        self.does(e.Tick(), 0.0)

    def does(self, event: e.Event, now: float) -> None:
        for action in self.all.step(event, now):
            if isinstance(action, req.Request):
                self.asked.append(action)
            elif isinstance(action, a.WriteRecord):
                self.does(e.RecordWritten(action), now)

    def answers(self, name: str, kind: type[req.Request], outcome: o.Outcome, now: float) -> None:
        request = next(r for r in reversed(self.asked) if r.item == name and isinstance(r, kind))
        self.does(e.Answered(request, outcome), now)

    def waits(self, name: str, view: o.KeyView, now: float = 0.2) -> None:
        self.answers(name, p.CREATE, o.Created(f"s-{name}"), now)
        self.answers(name, p.RENEW, o.SessionAlive(), now)
        self.answers(name, p.WATCH, view, now)

    def tried(self) -> list[str]:
        return [r.item for r in self.asked if isinstance(r, p.ACQUIRE)]

    def lock(self, name: str) -> ElectionLock:
        lock = self.all.by_name[name].lock
        assert isinstance(lock, ElectionLock)
        return lock


def item(name: str, **more: Any) -> ElectionSettings:
    return replace(p.contender(**{**BUSY, **more}), name=name, key=name)


def leading(*others: ElectionSettings, **more: Any) -> Node:
    """Return a node that has just won the first of these elections."""
    node = Node(item("one", **more), *others)
    node.waits("one", p.FREE)
    node.answers("one", p.ACQUIRE, p.WON, 0.2)
    return node


def test_of_two_keys_that_are_free_at_once_a_node_tries_for_one_first() -> None:
    """An attempt under way counts, so that no node tries for all keys before it knows its first win."""
    node = Node(item("one"), item("two"))
    node.waits("one", p.FREE)
    node.waits("two", p.FREE)
    assert node.tried() == ["one"]
    assert 0.2 < node.lock("two").try_at <= 0.2 + BUSY_S


def test_a_race_that_was_lost_no_longer_counts() -> None:
    node = Node(item("one"), item("two"))
    node.waits("one", p.FREE)
    node.waits("two", p.FREE)
    node.answers("one", p.ACQUIRE, o.LostRace(), 0.3)
    node.answers("two", p.WATCH, p.FREE, 0.4)
    assert node.tried() == ["one", "two"]


def test_each_lock_that_is_held_counts() -> None:
    node = leading(item("two"), item("three"))
    node.waits("two", p.FREE)
    node.does(e.Tick(), node.lock("two").try_at)
    node.answers("two", p.ACQUIRE, p.WON, 1.2)
    node.waits("three", p.FREE, 1.2)
    assert 1.2 + BUSY_S < node.lock("three").try_at <= 1.2 + 2 * BUSY_S


@pytest.mark.parametrize(("groups", "counts"), [(("a", "a"), 1), (("a", "b"), 0), (("a", ""), 1)])
def test_with_a_group_its_locks_alone_count(groups: tuple[str, str], counts: int) -> None:
    first, second = groups
    node = leading(item("two", group=second), group=first)
    node.waits("two", p.FREE)
    assert node.lock("two").held == counts


def test_a_lock_changes_its_group_with_the_file() -> None:
    node = leading(item("two", group="b"), group="a")
    node.does(e.SettingsChanged("one", item("one", group="b")), 0.3)
    node.waits("two", p.FREE, 0.4)
    assert node.lock("two").held == 1


def test_a_slot_counts_as_well() -> None:
    node = Node(item("one"), beside=(holding_a_slot().contender,))
    node.waits("one", p.FREE)
    assert node.tried() == []


def test_the_target_of_a_hand_over_does_not_wait() -> None:
    node = leading(item("two"))
    node.waits("two", replace(p.FREE, value=naming("s-two")))
    assert node.tried() == ["one", "two"]
    lock = node.lock("two")
    assert lock.beside(5, "s-two").try_at == lock.try_at < lock.beside(5, "another").try_at


def test_without_a_busy_delay_nothing_waits() -> None:
    node = leading(item("two", busy_delay_s=0.0))
    node.waits("two", p.FREE)
    assert node.tried() == ["one", "two"] and node.lock("two").held == 0
