"""``lock --every``: what a machine concludes from the value of the key and from its own clocks."""

import json
from typing import Any

import pytest

from supervisor.commands.lock_command.period import SEEN_MAX, VALUE_BYTES_MAX, Judged, Period

EVERY_S, NOON_S, HOUR_S, DAY_S = 300.0, 1_790_000_000.0, 3600.0, 86_400.0


def of(boot: str = "mine", every_s: float = EVERY_S) -> Period:
    return Period(every_s, boot, "n1")


def started(at_s: float = NOON_S, **seen: float) -> bytes:
    return json.dumps({"Node": "n1", "Started": at_s, "Seen": seen}).encode()


def noted(judged: Judged) -> Any:
    assert judged.value is not None
    return json.loads(judged.value)


@pytest.mark.parametrize(
    "value",
    [
        b"",
        b"node1",
        b'{"Node":"n1"}',
        b"[1]",
        b'{"Started": 1, "Seen": []}',
        b'{"Started": [], "Seen": {}}',
        b'{"Started": NaN, "Seen": {}}',
        b'{"Started": 1e999, "Seen": {}}',
        b'{"Started": 1, "Seen": {"mine": "x"}}',
        b'{"Started": 1, "Seen": {"mine": 1' + b"0" * 400 + b"}}",
        b'{"Started": 1, "Seen": {"a": ' + b"[" * 5000 + b"}}",
        started(mine=99.0) + b" " * VALUE_BYTES_MAX,
    ],
    ids=lambda value: f"{value[:40]!r} of {len(value)}",
)
def test_a_value_without_a_start_lets_the_command_run(value: bytes) -> None:
    judged = of().judge(value, 100.0, NOON_S)
    assert judged.why_not == ""
    assert noted(judged) == {"Node": "n1", "Started": NOON_S, "Seen": {"mine": 100.0}}


@pytest.mark.parametrize(("age_s", "is_due"), [(0.0, False), (294.9, False), (295.0, True), (9000.0, True)])
@pytest.mark.parametrize("off_s", [-3 * DAY_S, -HOUR_S, 0.0, HOUR_S, DAY_S, 3 * DAY_S])
def test_whoever_saw_the_start_counts_from_that_whatever_its_clock_says(
    off_s: float, age_s: float, is_due: bool
) -> None:
    judged = of().judge(started(mine=100.0), 100.0 + age_s, NOON_S + age_s + off_s)
    assert (judged.why_not == "") is is_due
    assert (judged.value is None) is not is_due


@pytest.mark.parametrize("off_s", [-HOUR_S, 0.0, HOUR_S, DAY_S - 1])
def test_whoever_sees_the_start_first_notes_that_and_is_due_a_period_later(off_s: float) -> None:
    first = of().judge(started(other=7.0), 5000.0, NOON_S + EVERY_S + off_s)
    assert first.why_not == "not due before 5m have passed since this machine saw a start, 0s ago"
    assert noted(first) == {"Node": "n1", "Started": NOON_S, "Seen": {"other": 7.0, "mine": 5000.0}}
    assert first.value is not None
    later = of().judge(first.value, 5000.0 + EVERY_S, NOON_S + 2 * EVERY_S + off_s)
    assert noted(later)["Seen"] == {"mine": 5000.0 + EVERY_S}


def test_a_process_that_waits_counts_from_when_it_saw_the_start_and_not_from_its_turn() -> None:
    waiting = of()
    waiting.sees(started(other=7.0), 5000.0)
    waiting.sees(started(other=7.0), 5030.0)
    assert noted(waiting.judge(started(other=7.0), 5060.0, NOON_S))["Seen"]["mine"] == 5000.0


def test_a_start_that_nobody_here_has_seen_is_old_a_day_after_its_period() -> None:
    """So the command goes on where each machine lives for less than a period."""
    for after_s, is_due in ((DAY_S + EVERY_S - 1, False), (DAY_S + EVERY_S, True)):
        assert (of().judge(started(other=7.0), 50.0, NOON_S + after_s).why_not == "") is is_due


def test_a_start_of_a_clock_that_was_never_set_is_not_old() -> None:
    assert of().judge(started(60.0, other=7.0), 50.0, NOON_S).why_not


def test_what_this_machine_noted_in_its_own_future_counts_from_now() -> None:
    judged = of().judge(started(mine=1e9), 50.0, NOON_S)
    assert judged.value is None and judged.why_not.endswith("0s ago")


def test_a_full_value_takes_no_further_machine() -> None:
    full = started(**{f"m{number}": 1.0 for number in range(SEEN_MAX)})
    assert of().judge(full, 50.0, NOON_S).value is None


def test_a_long_period_has_a_slack_of_seconds() -> None:
    daily = of(every_s=DAY_S)
    assert daily.judge(started(mine=0.0), DAY_S - 5.1, NOON_S).why_not
    assert not daily.judge(started(mine=0.0), DAY_S - 5.0, NOON_S).why_not
