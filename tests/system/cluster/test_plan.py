"""Equal seeds give equal plans, every kind of fault comes before one comes twice, as the page says."""

from tests.support.pages import LEASE, SAFETY
from tests.system.cluster.election import QUICK
from tests.system.cluster.faults import BRIEF_S, KINDS, LEADER_KINDS, LONG_S, plan


def test_a_seed_always_gives_equal_faults() -> None:
    assert plan(7, 30) == plan(7, 30) != plan(8, 30)


def test_twelve_faults_are_of_every_kind() -> None:
    assert {fault.kind for fault in plan(1, 12)} == set(KINDS)
    assert len(KINDS) == 12


def test_the_page_says_how_many_kinds_of_faults_there_are_and_how_long_they_last() -> None:
    text = " ".join(LEASE.read_text().split())
    assert f"Faults of {len(KINDS)} kinds follow" in text
    assert f"{BRIEF_S:g} s or {LONG_S:g} s" in text


def test_faults_of_the_leading_server_come_beside_the_quick_file_of_the_docs() -> None:
    assert {fault.kind for fault in plan(1, 3, LEADER_KINDS)} == set(LEADER_KINDS)
    assert f"session: {QUICK}" in SAFETY.read_text()
