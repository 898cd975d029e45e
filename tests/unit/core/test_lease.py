"""The safety arithmetic against a table that was computed by hand.

lose_time = kill_after of on_acquire + stop of run + each on_lose and on_lose_failure (timeout and
kill_after); margin = max(0.5, 5 %); room = lock_delay - margin - lose_time; interval =
max(1, min(ttl, room) / 3); silence = room - 2 x interval; failover = 2 x ttl + lock_delay.
"""

from dataclasses import dataclass, replace

import pytest

from supervisor.core.lease import ROOM_MIN_S, Lease, lease_of, lose_terms, sufficient_lockout_s
from supervisor.core.settings import Command, ElectionSettings, Fence, Hook, Run, SessionSettings, Webhook


@dataclass(frozen=True)
class Row:
    """One election and its figures; every on_lose hook takes 5 s and 1 s to be killed."""

    lock_delay_s: float
    hooks: int
    run: bool
    margin_s: float
    lose_time_s: float
    room_s: float
    interval_s: float
    silence_s: float
    ttl_s: float | None = 10.0
    acquire: bool = True
    accept_overlap: bool = False


# fmt: off
TABLE = (
    #   delay  hooks run    margin lose   room   interval   silence
    Row(15.0,  0,    False, 0.75,  1.0,   13.25, 10 / 3,    13.25 - 20 / 3),
    Row(15.0,  1,    False, 0.75,  7.0,   7.25,  7.25 / 3,  7.25 / 3),
    Row(15.0,  2,    False, 0.75,  13.0,  1.25,  1.0,       -0.75),
    Row(30.0,  0,    False, 1.5,   1.0,   27.5,  10 / 3,    27.5 - 20 / 3),
    Row(30.0,  0,    True,  1.5,   6.0,   22.5,  10 / 3,    22.5 - 20 / 3),
    Row(30.0,  1,    False, 1.5,   7.0,   21.5,  10 / 3,    21.5 - 20 / 3),
    Row(30.0,  1,    True,  1.5,   12.0,  16.5,  10 / 3,    16.5 - 20 / 3),
    Row(30.0,  2,    False, 1.5,   13.0,  15.5,  10 / 3,    15.5 - 20 / 3),
    Row(30.0,  3,    False, 1.5,   19.0,  9.5,   9.5 / 3,   9.5 / 3),
    Row(30.0,  3,    True,  1.5,   24.0,  4.5,   1.5,       1.5),
    Row(30.0,  4,    False, 1.5,   25.0,  3.5,   3.5 / 3,   3.5 / 3),
    Row(30.0,  5,    False, 1.5,   31.0,  -2.5,  1.0,       -4.5),
    Row(45.0,  2,    True,  2.25,  18.0,  24.75, 10 / 3,    24.75 - 20 / 3),
    Row(45.0,  5,    True,  2.25,  36.0,  6.75,  2.25,      2.25),
    Row(60.0,  0,    False, 3.0,   1.0,   56.0,  10 / 3,    56.0 - 20 / 3),
    Row(60.0,  4,    True,  3.0,   30.0,  27.0,  10 / 3,    27.0 - 20 / 3),
    Row(60.0,  5,    True,  3.0,   36.0,  21.0,  10 / 3,    21.0 - 20 / 3),
    Row(60.0,  5,    True,  3.0,   36.0,  21.0,  5.0,       11.0,           ttl_s=15.0),
    Row(60.0,  5,    True,  3.0,   36.0,  21.0,  7.0,       7.0,            ttl_s=30.0),
    Row(60.0,  5,    True,  3.0,   36.0,  21.0,  7.0,       7.0,            ttl_s=None),
    Row(60.0,  1,    False, 3.0,   7.0,   50.0,  1.0,       48.0,           ttl_s=2.0),
    Row(10.0,  0,    False, 0.5,   0.0,   9.5,   9.5 / 3,   9.5 / 3,        acquire=False),
    Row(5.0,   0,    False, 0.5,   0.0,   4.5,   1.5,       1.5,            acquire=False),
    Row(0.0,   0,    False, 0.5,   0.0,   -0.5,  1.0,       -2.5,           acquire=False),
    Row(0.0,   0,    False, 0.5,   1.0,   10.0,  10 / 3,    10 / 3,         accept_overlap=True),
    Row(1.0,   1,    False, 0.5,   7.0,   10.0,  10 / 3,    10 / 3,         accept_overlap=True),
    Row(30.0,  1,    False, 1.5,   7.0,   21.5,  10 / 3,    21.5 - 20 / 3,  accept_overlap=True),
    Row(0.0,   0,    False, 0.5,   1.0,   -1.5,  1.0,       -3.5,           accept_overlap=True, ttl_s=None),
)
# fmt: on


def hook(name: str, timeout_s: float = 5.0, kill_after_s: float = 1.0) -> Hook:
    return Hook(name=name, call=Command(("true",), kill_after_s=kill_after_s), timeout_s=timeout_s)


def election(row: Row) -> ElectionSettings:
    return ElectionSettings(
        name="app",
        key="service/app/leader",
        value=b"",
        session=SessionSettings(name="app", ttl_s=row.ttl_s, lock_delay_s=row.lock_delay_s),
        on_acquire=(hook("on_acquire[0]", timeout_s=600.0),) if row.acquire else (),
        on_lose=tuple(hook(f"on_lose[{index}]") for index in range(row.hooks)),
        on_change=(hook("on_change[0]", timeout_s=600.0),),
        run=Run(Command(("app",), kill_after_s=9.0), stop_timeout_s=5.0) if row.run else None,
        accept_overlap=row.accept_overlap,
    )


@pytest.mark.parametrize(
    "row", TABLE, ids=lambda row: f"{row.lock_delay_s:g}s-{row.hooks}-{row.run}-{row.ttl_s}"
)
def test_the_figures_are_those_of_the_table(row: Row) -> None:
    lease = lease_of(election(row))
    assert lease.margin_s == pytest.approx(row.margin_s)
    assert lease.lose_time_s == pytest.approx(row.lose_time_s)
    assert lease.room_s == pytest.approx(row.room_s)
    assert lease.interval_s == pytest.approx(row.interval_s)
    assert lease.silence_s == pytest.approx(row.silence_s)
    assert lease.exchange_s == pytest.approx(min(row.interval_s, 3.0))
    assert lease.fresh_s == pytest.approx(row.interval_s + min(row.interval_s, 3.0))
    assert lease.failover_s == (None if row.ttl_s is None else 2 * row.ttl_s + row.lock_delay_s)


def test_the_failover_with_a_fence_that_fails_is_longer_by_the_lock_delay_in_consul() -> None:
    def lease(fence: Fence | None) -> Lease:
        return lease_of(replace(election(TABLE[0]), fence=fence))

    guarded, usual = Fence(hook("fence")), lease(None)
    lock_delay_s, assumed_s = usual.lockout_s, usual.failover_s
    assert assumed_s is not None
    assert lease(guarded).failover_s == assumed_s + lock_delay_s
    assert lease(replace(guarded, exclusive=True)).failover_s == assumed_s, (
        "the record alone keeps others back"
    )
    assert lease(replace(guarded, required=True)).failover_s is None
    assert lease(guarded).room_s == usual.room_s, "a holder relies on the lock-delay as before"


def test_without_overlap_belief_and_loss_fit_between_contact_and_rival() -> None:
    """Belief, the lose time and the margin end exactly when a rival may hold."""
    for row in TABLE:
        lease = lease_of(election(row))
        if not row.accept_overlap:
            assert lease.room_s + lease.lose_time_s + lease.margin_s == pytest.approx(row.lock_delay_s)


@pytest.mark.parametrize(
    ("ttl_s", "lock_delay_s", "cut_off_s"),
    [
        (10.0, 45.0, 20 - 10 / 3 - 3 - 1),
        (2.0, 45.0, 4 - 2 / 3 - 1 - 1),
        (30.0, 30.0, 28.5 / 3),  # bounded by the room: 28.5 - 2 x 9.5
        (None, 30.0, 28.5 / 3),
    ],
)
def test_a_node_that_is_cut_off_leads_for_its_sessions_ttl_at_most(
    ttl_s: float | None, lock_delay_s: float, cut_off_s: float
) -> None:
    settings = ElectionSettings(
        "app", "k", b"", SessionSettings("app", ttl_s=ttl_s, lock_delay_s=lock_delay_s)
    )
    assert lease_of(settings).cut_off_s == pytest.approx(cut_off_s)


def test_the_terms_of_lose_time_are_named_in_their_order() -> None:
    settings = ElectionSettings(
        name="app",
        key="k",
        value=b"",
        session=SessionSettings(name="app"),
        on_acquire=(hook("a", kill_after_s=2.0), hook("b", kill_after_s=3.0), hook("c", kill_after_s=1.0)),
        run=Run(Command(("app",)), stop_timeout_s=4.0),
        on_lose=(
            hook("stop", 6.0, 0.5),
            Hook("tell", Webhook("http://h/"), timeout_s=2.0, retries=5, retry_delay_s=9.0),
        ),
        on_lose_failure=(hook("off", 1.0),),
    )
    assert lose_terms(settings) == (
        ("on_acquire kill_after", 3.0),  # the longest, because only one hook runs
        ("run stop_timeout", 4.0),
        ("stop", 6.5),
        ("tell", 2.0),  # a webhook is dropped at once, and retries use the time that is left
        ("off", 2.0),
    )


@pytest.mark.parametrize(
    ("hooks", "run", "ttl_s", "enough_s"),
    [
        # room - 2 x 10/3 >= 14.5: 0.95 x lock_delay >= 21.167 + lose_time
        (0, False, 10.0, 24),  # lose_time 1: 23.33
        (1, False, 10.0, 30),  # 7: 29.65
        (2, False, 10.0, 36),  # 13: 35.96
        (3, True, 10.0, 48),  # 24: 47.54
        (5, False, 10.0, 55),  # 31: 54.91
        (5, True, 10.0, None),  # 36: 60.18
        # ttl above room: room / 3 >= 14.5, so 0.95 x lock_delay >= 43.5 + lose_time
        (0, False, None, 47),  # 1: 46.84
        (1, False, None, 54),  # 7: 53.16
        (2, False, None, 60),  # 13: 59.47
        (3, False, None, None),  # 19: 65.79
        # interval at its least: room - 2 >= 14.5
        (0, False, 1.0, 19),  # 1: 18.42
    ],
)
def test_the_suggested_lock_delay_is_the_smallest_sufficient_one(
    hooks: int, run: bool, ttl_s: float | None, enough_s: int | None
) -> None:
    row = Row(30.0, hooks, run, 0, 0, 0, 0, 0, ttl_s=ttl_s)
    assert sufficient_lockout_s(election(row), ROOM_MIN_S, 14.5) == enough_s


@pytest.mark.parametrize(
    ("confirm_every_s", "interval_s", "silence_s", "exchange_s"),
    [
        (0.5, 0.5, 20.5, 1.0),  # a write may need longer than one interval
        (1.0, 1.0, 19.5, 1.0),
        (10.0, 10.0, 1.5, 3.0),
        (10.75, 10.75, 0.0, 3.0),
        (
            11.0,
            10 / 3,
            21.5 - 20 / 3,
            3.0,
        ),  # the file is refused, and a semaphore's .lock may leave less room
    ],
)
def test_how_often_a_holder_confirms_changes_the_tolerated_silence_alone(
    confirm_every_s: float, interval_s: float, silence_s: float, exchange_s: float
) -> None:
    settings = election(Row(30.0, 1, False, 0, 0, 0, 0, 0))
    usual, lease = lease_of(settings), lease_of(replace(settings, confirm_every_s=confirm_every_s))
    assert lease.interval_s == pytest.approx(interval_s)
    assert lease.exchange_s == pytest.approx(exchange_s)
    assert lease.silence_s == pytest.approx(silence_s)
    assert lease.fresh_s == pytest.approx(interval_s + exchange_s)
    same = ("ttl_s", "lockout_s", "margin_s", "lose_time_s", "room_s", "failover_s")
    assert all(getattr(lease, name) == getattr(usual, name) for name in same)
