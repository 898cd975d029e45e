"""Plays of semaphores: the settings, the views, and the states that tests begin in.

The settings are those of ``play``, with 3 slots below ``p`` and a prune delay of 30 s. Session ``s`` is ours,
and ``o1``, ``o2`` and so on are other contenders. A view names the living contenders and the holders.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from supervisor.core import actions as a
from supervisor.core import events as e
from supervisor.core import outcomes as o
from supervisor.core import requests as r
from supervisor.core.settings import SemaphoreSettings, SessionSettings
from tests.unit.core.play import CREATE, DOWN, UP, Play

WATCH, READ, ASK = r.WatchSlots, r.ReadSlots, r.ReadKey
ENROLL, TAKE, LEAVE = r.JoinSemaphore, r.TakeSlot, r.LeaveSemaphore
GONE = o.KeyView(50)


def semaphore(*, limit: int = 3, **more: Any) -> SemaphoreSettings:
    base: dict[str, Any] = {"on_acquire": (UP,), "on_lose": (DOWN,), "prune_delay_s": 30.0, **more}
    session = SessionSettings("ours", ttl_s=9.0, lock_delay_s=15.0, behavior="delete")
    return SemaphoreSettings("n", "p/.lock", b"me", session, limit=limit, **base)


def key(name: str, *, alive: bool = True, delay_s: float | None = 30.0) -> o.ContenderKey:
    """Return a contender key that is in line since the index that its name ends with; ours is since 50."""
    index = int(name[1:]) if name[1:] else 50
    return o.ContenderKey(name, name if alive else "", b"me", index, 1, delay_s)


def lock(
    *holders: str,
    limit: int | None = 3,
    index: int = 60,
    delay_s: float | None = 30.0,
    numbers: Mapping[str, int | None] = MappingProxyType({}),
) -> o.LockKey:
    return o.LockKey(9, index, r.SlotRecord(limit, holders, delay_s, numbers=tuple(numbers.items())))


def view(*contenders: str, at: o.LockKey | None, index: int = 60) -> o.SlotsView:
    return o.SlotsView(index, at, tuple(map(key, contenders)))


EMPTY = o.SlotsView(5)
SEATED = o.SlotWritten(o.KeyIndexes(50, 50, 1), o.KeyIndexes(9, 61, 0))
TAKEN = o.SlotWritten(o.KeyIndexes(50, 50, 1), o.KeyIndexes(9, 61, 0))
OURS = view("s", at=lock("s", limit=3, index=61), index=61)


def waiting(**more: Any) -> Play:
    """Play until the session exists at 0.1; the watch of index 0 waits for its answer."""
    play = Play(semaphore(**more))
    play.does(0.0, "create, watch 0 consistently")
    play.does(0.1, CREATE, o.Created("s"), "")
    return play


def in_line(shown: o.SlotsView, **more: Any) -> Play:
    """Play until the contender stands in line since 0.3, behind all contenders of the view."""
    play = waiting(**more)
    assert "enroll s" in Play.says(play.on(0.2, WATCH, shown))
    play.on(0.3, ENROLL, o.SlotWritten(o.KeyIndexes(50, 50, 1), None))
    return play


def full(**more: Any) -> Play:
    """Play until the contender stands in line behind three holders."""
    return in_line(view("o1", "o2", "o3", at=lock("o1", "o2", "o3")), **more)


def holding(**more: Any) -> Play:
    """Play until the contender is the only holder since 0.3; on_acquire has ended at 1."""
    play = waiting(**more)
    play.does(0.2, WATCH, EMPTY, "enroll s as 3: s, watch 5")
    play.on(0.3, ENROLL, SEATED)
    play.happens(1.0, e.HookEnded(play.last(a.StartHook), ok=True))
    play.does(1.1, WATCH, OURS, "watch 61 consistently")
    assert play.role == "holding"
    return play
