"""The figure ``silence`` of ``check``: shorter ones cost nothing, whenever they begin, for every interval."""

from dataclasses import replace
from itertools import product

import pytest

from supervisor.core import outcomes as o
from tests.unit.core.play import ACQUIRE, CREATE, FREE, OURS, WATCH, WON, Play, contender

CONFIRM_EVERY_S = (None, 0.5, 1.0, 2.5, 6.0, 11.7)
TTLS_S = (3.0, 9.0)
SPREADS = (0.0, 0.999)
PARTS = 6  # of an interval, at whose beginnings a silence begins
MOMENT_S = 0.001


def holding(confirm_every_s: float | None, ttl_s: float | None, spread: float, until: float) -> Play:
    play = Play(contender(ttl_s=ttl_s, confirm_every_s=confirm_every_s, on_acquire=()))
    play.contender = replace(play.contender, spread=spread)
    play.does(0.0, "create, watch 0 consistently")
    play.on(0.0, CREATE, o.Created("s"))
    play.on(0.0, WATCH, FREE)
    play.on(0.0, ACQUIRE, WON)
    play.on(0.0, WATCH, OURS)
    play.passes(until)
    assert play.role == "holding"
    return play


@pytest.mark.parametrize(("confirm_every_s", "ttl_s"), [*product(CONFIRM_EVERY_S, TTLS_S)])
def test_a_silence_as_long_as_the_figure_is_no_loss(
    confirm_every_s: float | None, ttl_s: float | None
) -> None:
    """A request that was sent during the silence never gets an answer, so the next one must come in time."""
    for spread, part in product(SPREADS, range(PARTS)):
        play = holding(confirm_every_s, ttl_s, spread, 40.0)
        lease = play.contender.lease
        begins_at = 40.0 + part * lease.interval_s / PARTS
        ends_at = begins_at + lease.silence_s - MOMENT_S
        play.passes(begins_at)
        play.passes(ends_at, silent=True)
        play.passes(ends_at + 2 * lease.room_s, lost_before=ends_at)
        assert play.role == "holding", (spread, part)


@pytest.mark.parametrize(("confirm_every_s", "ttl_s"), [*product(CONFIRM_EVERY_S, TTLS_S)])
def test_a_silence_that_is_two_intervals_longer_is_a_loss_in_time(
    confirm_every_s: float | None, ttl_s: float | None
) -> None:
    """Belief ends one room after a contact, and the newest contact is at most one interval old."""
    play = holding(confirm_every_s, ttl_s, 0.5, 40.0)
    lease = play.contender.lease
    assert play.contender.tenure is not None
    contact = play.contender.tenure.contact
    play.passes(40.0 + lease.silence_s + 2 * lease.interval_s, silent=True)
    (lost_at,) = (at for at, action in play.log if "losing" in Play.says([action]))
    assert 40.0 - lease.interval_s <= contact <= 40.0
    assert lost_at == pytest.approx(contact + lease.room_s)
