"""The judge of the cluster finds the faults in lines written by hand, and none when all is well."""

import pytest

from tests.support.test_tenures import HANDED_OVER, by_hand, found
from tests.system.cluster import judge
from tests.system.cluster.judge import Overlap

LOCK_DELAY_S = 8.0


def overlaps(text: str) -> list[Overlap]:
    return judge.overlaps(found(text), by_hand(text), LOCK_DELAY_S)


def test_a_hand_over_in_order_has_a_gap_and_no_overlap() -> None:
    seen = found(HANDED_OVER)
    assert not overlaps(HANDED_OVER)
    assert [end - begin for begin, end in judge.gaps(seen)] == [pytest.approx(5.9)]
    assert judge.longest_gap_s(seen, 0.0, 30.0) == pytest.approx(5.9)
    assert judge.longest_gap_s(seen, 27.0, 30.0) == 0.0
    holder = judge.holder(seen)
    assert holder is not None and (holder.node, holder.token, holder.lost) == ("b", 9, False)


@pytest.mark.parametrize(("at", "excused"), [(4.0, False), (4.1, True), (15.0, True), (25.0, False)])
def test_only_the_first_lock_delays_after_a_restart_of_the_leading_server_are_beyond_the_limits(
    at: float, excused: bool
) -> None:
    text = HANDED_OVER.replace("26.00 b", "20.05 b") + f"{at:.2f} s1 leader-restarted\n"
    assert [overlap.beyond_limits for overlap in overlaps(text)] == [excused]


def test_a_tenure_that_ends_beside_another_holder_leaves_no_gap() -> None:
    text = "10.00 a acquire-begin A 7\n11.00 b acquire-begin B 8\n12.00 b lose-end B 8\n"
    text += "30.00 a lose-end A 7\n31.50 c acquire-begin C 9\n"
    assert list(judge.gaps(found(text))) == [(30.0, 31.5)]
