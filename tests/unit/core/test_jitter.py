"""Contenders that began at the same instant send requests at different ones, and none later than promised."""

from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise

import pytest

from supervisor.core import actions as a
from supervisor.core import events as e
from supervisor.core import outcomes as o
from supervisor.core import requests as r
from supervisor.core.jitter import FIRST_JITTER_MAX, JITTER_MAX, align_to_series, align_to_tick
from tests.unit.core import play as p

SPREADS = (0.0, 0.25, 0.5, 0.999)
CREATED_AT, CONTACT, WON_AT = 0.1, 0.2, 0.3
WAITER_S, HOLDER_S, INTERVAL_S = 4.5, 3.0, 3.0  # of play.contender
UNTIL = 120.0


def began(spread: float, ttl_s: float | None = 9.0, read_offset: float | None = None) -> p.Play:
    play = p.Play(p.contender(ttl_s=ttl_s))
    play.contender = replace(play.contender, spread=spread, read_offset=read_offset)
    play.does(0.0, "create, watch 0 consistently")
    play.does(CREATED_AT, p.CREATE, o.Created("s"), "")
    return play


def waiter(spread: float, ttl_s: float = 9.0, read_offset: float | None = None) -> p.Play:
    play = began(spread, ttl_s, read_offset)
    play.on(CONTACT, p.WATCH, p.RIVAL)
    play.on(CONTACT, p.INFO, o.SessionInfo(15.0))
    play.passes(UNTIL)
    return play


def holder(spread: float, ttl_s: float | None = 9.0, read_offset: float | None = None) -> p.Play:
    play = began(spread, ttl_s, read_offset)
    play.on(CONTACT, p.WATCH, p.FREE)
    play.on(WON_AT, p.ACQUIRE, p.WON)
    play.happens(WON_AT, e.HookEnded(play.last(a.StartHook), ok=True))
    play.on(WON_AT, p.WATCH, p.OURS)
    play.passes(UNTIL)
    assert play.role == "holding"
    return play


def nearest_s(ours: list[float], others: list[float]) -> list[float]:
    """Return how far each of our times is from the nearest of the others."""
    return [min(abs(at - other) for other in others) for at in ours]


@pytest.mark.parametrize("spread", SPREADS)
def test_no_interval_is_longer_than_promised_nor_much_shorter(spread: float) -> None:
    """The first of a series comes at the spread's own time within its interval, and no later."""
    waits, holds = waiter(spread), holder(spread)
    for play, kind, begin, every_s in (
        (waits, p.RENEW, CREATED_AT, WAITER_S),
        (holds, p.RENEW, WON_AT, HOLDER_S),
        (holds, p.READ, CONTACT, INTERVAL_S),
    ):
        times = play.times(kind)
        first_at = begin + every_s * (1 - FIRST_JITTER_MAX * spread)
        assert times[0] <= max(first_at, WON_AT) + 1e-9
        assert UNTIL - times[-1] <= every_s
        assert all(after - before <= every_s + 1e-9 for before, after in pairwise(times))
        regular = [at for at in times if at > first_at + every_s]
        assert len(regular) > 20
        for before, after in pairwise(regular):
            assert after - before == pytest.approx(every_s * (1 - JITTER_MAX * spread))


def test_renewals_are_spread_without_a_ttl() -> None:
    first, second, *_ = holder(0.5, ttl_s=None).times(p.RENEW)
    assert first == pytest.approx(CREATED_AT + 7.5)
    assert second - first == pytest.approx(9.5)


@pytest.mark.parametrize(("kind", "begin"), [(p.RENEW, waiter), (p.RENEW, holder), (p.READ, holder)])
def test_two_contenders_that_began_together_move_apart(
    kind: type[r.Request], begin: Callable[[float], p.Play]
) -> None:
    """Their requests differ from the first one on, and do not settle at any distance."""
    ours, theirs = (begin(spread).times(kind) for spread in (0.25, 0.75))
    assert nearest_s(ours[:2], theirs)[0] > 0.5
    apart_s = nearest_s(ours, theirs)
    assert max(apart_s) - min(apart_s) > 1.0


def test_two_contenders_of_one_spread_stay_in_step() -> None:
    """Only the spread moves requests, so a run can be repeated."""
    assert holder(0.25).log == holder(0.25).log


@pytest.mark.parametrize(
    ("begin", "ttl_s", "every_s", "tick_s"), [(waiter, 9.0, 4.5, 0.225), (holder, 60.0, 20.0, 0.25)]
)
def test_one_of_many_contenders_renews_at_the_ticks_of_its_process(
    begin: Callable[..., p.Play], ttl_s: float, every_s: float, tick_s: float
) -> None:
    """Such a renewal is no later than that of a lone contender, and hardly ever an additional one."""
    alone, many = begin(0.3, ttl_s), begin(0.3, ttl_s, read_offset=0.5)
    for play in (alone, many):
        assert all(after - before <= every_s + 1e-9 for before, after in pairwise(play.times(p.RENEW)))
    for at in many.times(p.RENEW):
        assert at / tick_s == pytest.approx(round(at / tick_s))
        assert 0 <= at + 0.7 * tick_s - align_to_tick(at + 0.7 * tick_s, every_s) < tick_s
    assert len(many.times(p.RENEW)) <= 1.06 * len(alone.times(p.RENEW)) + 1


def test_no_time_of_a_series_is_later_than_allowed() -> None:
    """Nor is it the former one once more, wherever floating point rounds."""
    for offset in (0.0, 0.3, 0.999):
        at = 0.1
        for _ in range(1000):
            former_at, at = at, align_to_series(at + 0.1, 0.1, offset)
            assert former_at + 1e-8 < at <= former_at + 0.1


@pytest.mark.parametrize("read_offset", [0.0, 0.3, 0.999])
def test_one_of_many_holders_renews_when_it_reads(read_offset: float) -> None:
    """One step then serves both, unless a renewal would come much sooner than needed."""
    play = holder(0.3, 9.0, read_offset)
    reads, renewals = play.times(p.READ), play.times(p.RENEW)
    assert renewals[-30:] == reads[-30:]
    assert all(after - before <= HOLDER_S + 1e-9 for before, after in pairwise(renewals))


@pytest.mark.parametrize("read_offset", [0.0, 0.3, 0.999])
def test_contenders_of_one_read_offset_read_at_the_same_instants(read_offset: float) -> None:
    """One request then serves all of them, and no contender waits longer than promised."""
    plays = [began(spread) for spread in (0.1, 0.8)]
    for number, play in enumerate(plays):
        play.contender = replace(play.contender, read_offset=read_offset)
        begin = CONTACT + number
        play.on(begin, p.WATCH, p.FREE)
        play.on(begin, p.ACQUIRE, p.WON)
        play.happens(begin, e.HookEnded(play.last(a.StartHook), ok=True))
        play.on(begin, p.WATCH, p.OURS)
        play.passes(UNTIL)
    ours, theirs = (play.times(p.READ) for play in plays)
    assert ours[-10:] == pytest.approx(theirs[-10:])
    for times in (ours, theirs):
        assert all(after - before <= INTERVAL_S + 1e-9 for before, after in pairwise(times))
        assert len(times) <= UNTIL / INTERVAL_S + 1
