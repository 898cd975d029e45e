"""Seconds of double holding and of needless loss, from stamps written by hand."""

import pytest

from tests.system.cluster import stamps
from tests.system.cluster.stamps import Look


def stamped(node: str, pid: int, since: float, until: float) -> str:
    """Return a stamp for each tenth of a second."""
    return "".join(
        f"{node} {pid} {tick / 10:.3f}\n" for tick in range(round(since * 10), round(until * 10) + 1)
    )


ONE_AFTER_THE_OTHER = stamped("a", 1, 10, 20) + stamped("b", 2, 25, 30)


def test_a_child_lives_from_its_first_stamp_to_its_last() -> None:
    alive = stamps.lives(ONE_AFTER_THE_OTHER)
    assert [(life.node, life.begin, life.end) for life in alive] == [("a", 10, 20), ("b", 25, 30)]
    assert stamps.double_s(alive) == 0.0
    assert stamps.gaps(alive) == [(20, 25)]


def test_two_children_at_once_on_one_node_are_double_holding() -> None:
    alive = stamps.lives(stamped("a", 1, 10, 20) + stamped("b", 2, 15, 30) + stamped("b", 3, 28, 29))
    assert stamps.double_s(alive) == pytest.approx(5 + 1)
    assert stamps.gaps(alive) == []


def test_a_frozen_child_is_not_alive() -> None:
    alive = stamps.lives(stamped("a", 1, 10, 12) + stamped("a", 1, 20, 22))
    assert stamps.gaps(alive) == [(12, 20)]


@pytest.mark.parametrize(
    ("after", "needless"),
    [("S", 5.0), ("", 0.0), ("T", 0.0)],
    ids=["the key still shows it", "Consul took it away", "another has it"],
)
def test_a_loss_is_needless_when_consul_took_nothing_away(after: str, needless: float) -> None:
    looks = [Look(19.9, "S"), Look(20.1, "S"), Look(20.6, after), Look(25.0, "T")]
    assert stamps.needless_s(stamps.lives(ONE_AFTER_THE_OTHER), looks) == needless


def test_a_look_without_a_result_does_not_count() -> None:
    looks = [Look(19.8, "S"), Look(19.9, None), Look(20.6, None), Look(20.8, "S")]
    assert stamps.needless_s(stamps.lives(ONE_AFTER_THE_OTHER), looks) == 5.0
