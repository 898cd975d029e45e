"""The judge of the machines finds what is wrong in consoles written by hand, and nothing when all is well."""

from tests.system.emulated.acts import EVERY_S
from tests.system.emulated.machine import Line
from tests.system.watchdog.judge import End, Verdict, judge

RIVAL = 30.0


def acting(begin: float, end: float, token: int) -> list[Line]:
    """Return a console on which an application acts from one second to the other."""
    count = round((end - begin) / EVERY_S) + 1
    return [Line(begin + i * EVERY_S, f"I act with token {token}") for i in range(count)]


def verdict(until: float, reset_at: float | None) -> Verdict:
    """Judge a node that acted until then, and another one that acted from 31 s on."""
    return judge(acting(0.0, until, 7), acting(31.0, 33.0, 9), reset_at, RIVAL)


def test_a_reset_in_time_is_told_with_its_distance() -> None:
    found = verdict(until=9.9, reset_at=10.0)
    assert found.end is End.RESET
    assert round(found.distance_s or 0.0, 1) == 20.1
    assert found.first_act == 31.0


def test_without_a_reset_the_node_has_handed_over() -> None:
    assert verdict(until=9.9, reset_at=None).end is End.HANDED_OVER


def test_a_reset_after_another_node_might_act_is_too_late_although_that_node_came_later() -> None:
    found = verdict(until=30.5, reset_at=30.6)
    assert found.together_s == 0.0
    assert found.end is End.BOTH


def test_two_nodes_that_act_at_once_are_found_with_the_time() -> None:
    found = verdict(until=32.0, reset_at=32.1)
    assert found.end is End.BOTH
    assert round(found.together_s, 1) == 1.1


def test_a_node_that_goes_on_after_a_pause_acts_only_from_then_on() -> None:
    console = [*acting(0.0, 5.0, 7), *acting(32.0, 32.4, 7)]
    assert round(judge(console, acting(31.0, 35.0, 9), None, RIVAL).together_s, 1) == 0.5


def test_a_node_beside_which_no_other_has_acted_has_held_on() -> None:
    assert judge(acting(0.0, 50.0, 7), [], None, None).end is End.HELD
