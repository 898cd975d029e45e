"""Until when a watchdog may be fed, and what is due for its device: pure values in, values out."""

import pytest

from supervisor.core.frozen import replace
from supervisor.core.lease import lease_of
from supervisor.core.machines.tenure import Tenure
from supervisor.core.times import LONG_AGO, NEVER
from supervisor.core.watchdog import FEED_AHEAD_S, Act, Device, due
from tests.unit.core.play import LOCK_DELAY_S, ROOM_S, contender

LEASE = lease_of(contender())  # lock_delay 30, margin 1.5, lose_time 5
TENURE = Tenure("s", 7, 3, 1, contact=100.0, leader=b"me", previous_leader=None)
CLOSED = Device(10.0, try_at=NEVER)
OPEN = Device(10.0, is_open=True, fed_at=100.0)


def test_the_reset_comes_half_a_margin_before_a_rival_may_hold() -> None:
    assert TENURE.reset_by(LEASE) == 100.0 + LOCK_DELAY_S - 0.75


def test_a_loss_that_uses_all_of_its_time_ends_before_the_reset() -> None:
    ends_at = TENURE.contact + ROOM_S + LEASE.lose_time_s
    assert ends_at == TENURE.reset_by(LEASE) - LEASE.margin_s / 2


def test_a_loss_that_consul_does_not_guard_has_the_time_that_losing_takes() -> None:
    assert replace(TENURE, taken_at=105.0).reset_by(LEASE) == 110.0


def test_a_rival_that_is_seen_late_in_a_loss_does_not_put_the_reset_off() -> None:
    assert replace(TENURE, taken_at=129.9).reset_by(LEASE) == TENURE.reset_by(LEASE)


def test_a_session_that_ended_without_a_release_is_guarded_again() -> None:
    again = replace(TENURE, taken_at=105.0).lock_delayed()
    assert again.reset_by(LEASE) == TENURE.reset_by(LEASE)


@pytest.mark.parametrize(
    ("device", "until", "now", "expected"),
    [
        (OPEN, None, 105.0, (105.0, Act.CLOSE)),  # nothing is left to guard
        (CLOSED, None, 105.0, (NEVER, Act.LOOK)),  # it is known to be usable
        (replace(CLOSED, try_at=LONG_AGO), None, 105.0, (LONG_AGO, Act.LOOK)),  # who knows whether it runs
        (replace(CLOSED, try_at=109.0), None, 105.0, (109.0, Act.LOOK)),  # it failed a moment ago
        (OPEN, 200.0, 100.2, (101.0, Act.FEED)),  # once a second
        (OPEN, 110.5, 100.2, (110.5 - 10.0 - FEED_AHEAD_S, Act.FEED)),  # just before the last moment
        (replace(OPEN, fed_at=100.46), 110.5, 100.46, (101.46, Act.FEED)),  # not twice before the last moment
        (OPEN, 110.5, 100.5, (100.5 - FEED_AHEAD_S, Act.FEED)),  # in the last moment itself
        (OPEN, 110.5, 100.51, (100.51, Act.STARVE)),  # after it
        (
            replace(CLOSED, try_at=LONG_AGO),
            110.5,
            100.5,
            (LONG_AGO, Act.OPEN),
        ),  # of a process that was killed
        (replace(CLOSED, try_at=LONG_AGO), 110.5, 100.51, (100.51, Act.STARVE)),  # an open is a feed, too
    ],
)
def test_what_is_due_for_a_device_follows_from_its_tenures_and_the_time(
    device: Device, until: float | None, now: float, expected: tuple[float, Act]
) -> None:
    at, act = due(device, until, now)
    assert act is expected[1] and at == pytest.approx(expected[0])


def test_only_an_open_device_fires() -> None:
    assert (OPEN.fires_at, CLOSED.fires_at) == (110.0, NEVER)
