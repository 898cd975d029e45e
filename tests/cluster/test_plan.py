"""A seed is a plan: the same faults again, and every kind before one comes twice."""

from tests.cluster.faults import KINDS, plan


def test_a_seed_gives_the_same_faults_again() -> None:
    assert plan(7, 30) == plan(7, 30) != plan(8, 30)
    assert plan(7, 12) == plan(7, 30)[:12]


def test_twelve_faults_are_of_every_kind() -> None:
    assert {fault.kind for fault in plan(1, 12)} == set(KINDS)
    assert len(KINDS) == 12
