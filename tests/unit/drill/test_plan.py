"""Which items of a file a drill plays."""

from pathlib import Path

import pytest

from supervisor.rehearsal.drill.rehearsal import plan
from tests.support.configured import loaded

FILE = """
defaults: {hook: {timeout: 5s}}
elections:
  "db-${EACH}": {for_each: [b, a, c]}
  alone: {}
semaphores:
  "slot-${EACH}": {limit: 2, for_each: [a, b]}
"""
ALL = ["db-b", "db-a", "db-c", "alone", "slot-a", "slot-b"]


@pytest.mark.parametrize(
    ("names", "each", "played"),
    [([], False, ["db-b", "alone", "slot-a"]), ([], True, ALL), (["db-c", "db-a"], False, ["db-a", "db-c"])],
)
def test_one_item_of_each_for_each_is_played_unless_more_are_named(
    tmp_path: Path, names: list[str], each: bool, played: list[str]
) -> None:
    planned = plan({"node-a": loaded(tmp_path, FILE, {}, "node-a")}, names, 10.0, real=False, each=each)
    assert [item.original.name for item in planned.items] == played
