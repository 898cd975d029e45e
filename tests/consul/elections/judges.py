"""Promises about the lines of hooks in every scene. The judges know nothing of the product.

``tests.support.tenures`` has the promises about which node acts when.
"""

from collections.abc import Sequence

from tests.support.tenures import Record, shown


def assert_once_each(records: Sequence[Record], name: str) -> None:
    """Check that each attempt of a hook began once and that a tenure has one on_lose with one reason.

    ``run`` has a transition of its own.
    """
    begun = [(r.transition, r.hook, r.attempt) for r in records if r.stage == "begin" and r.name == name]
    assert len(begun) == len(set(begun)), f"a hook ran twice: {begun}"
    told: dict[tuple[str, str, bool], set[tuple[str, str]]] = {}
    for record in _lock_side(records, name):
        what = (record.session, record.event, record.hook == "run")
        told.setdefault(what, set()).add((record.transition, record.reason))
    assert all(len(one) == 1 for one in told.values()), f"one transition, one reason: {told}"


def assert_changes_are_changes(records: Sequence[Record], name: str) -> None:
    """Check that on_change fires on transitions, has the last reported value, and begins with ``initial``."""
    for node in {record.node for record in records}:
        told = [r for r in records if (r.node, r.name, r.event, r.stage) == (node, name, "change", "begin")]
        told = [record for record in told if record.attempt == 1 and record.hook == told[0].hook]
        assert [r.reason == "initial" for r in told] == [n == 0 for n in range(len(told))], shown(told)
        for before, after in zip(told, told[1:], strict=False):
            same = (before.session, before.leader, before.holders) == (
                after.session, after.leader, after.holders,
            )  # fmt: skip
            assert not same, f"no change: {before} and {after}"
            expected = before.leader or before.previous_leader
            assert after.previous_leader == expected, f"{before} and {after}"


def _lock_side(records: Sequence[Record], name: str) -> list[Record]:
    return [r for r in records if r.name == name and r.event in ("acquire", "lose")]
