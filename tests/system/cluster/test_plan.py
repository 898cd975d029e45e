"""Equal seeds give equal plans, every kind of fault comes before one comes twice, and the page names each."""

from tests.support.pages import ROOT, first_codes
from tests.system.cluster.election import QUICK
from tests.system.cluster.faults import BRIEF_S, KINDS, LEADER_KINDS, LONG_S, plan

PAGE = ROOT / "docs" / "cluster.md"


def test_a_seed_always_gives_equal_faults() -> None:
    assert plan(7, 30) == plan(7, 30) != plan(8, 30)


def test_twelve_faults_are_of_every_kind() -> None:
    assert {fault.kind for fault in plan(1, 12)} == set(KINDS)
    assert len(KINDS) == 12


def test_the_page_names_every_fault_and_its_length() -> None:
    assert first_codes(PAGE, "fault") == list(KINDS)
    assert f"{BRIEF_S:g} s or {LONG_S:g} s" in PAGE.read_text()


def test_faults_of_the_leading_server_come_beside_the_quick_file_of_the_docs() -> None:
    assert {fault.kind for fault in plan(1, 3, LEADER_KINDS)} == set(LEADER_KINDS)
    assert f"session: {QUICK}" in (ROOT / "docs" / "safety.md").read_text()
