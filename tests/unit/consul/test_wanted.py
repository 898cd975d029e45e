"""How many items share Consul: when each begins, and at which pace."""

from supervisor.adapters.consul.shared.grouping import WATCHES_MAX
from supervisor.adapters.consul.wanted import START_SPACING_S, read_offsets, wanted_of
from supervisor.config import Config, ConsulSettings, LogSettings
from supervisor.core.settings import ElectionSettings, SessionSettings


def config(items: int) -> Config:
    settings = [
        ElectionSettings(f"e{number:03}", f"k/{number:03}", b"", SessionSettings("s"))
        for number in range(items)
    ]
    return Config(ConsulSettings("http://127.0.0.1:8500"), LogSettings(), tuple(settings), "")


def test_items_begin_one_after_the_other() -> None:
    assert [each.delay_s for each in wanted_of(config(3))] == [0.0, START_SPACING_S, 2 * START_SPACING_S]


def test_a_new_item_does_not_wait_for_items_that_go_on() -> None:
    wanted = wanted_of(config(4), going_on=["e000", "e001", "e002"])
    assert [each.delay_s for each in wanted] == [0.0] * 4


def test_each_item_has_a_spread_of_its_own_and_items_read_together_one_read_offset() -> None:
    few, many = wanted_of(config(WATCHES_MAX)), wanted_of(config(2 * WATCHES_MAX))
    assert {each.read_offset for each in few} == {None}
    assert len({each.spread for each in many}) == len(many)
    offsets = [each.read_offset for each in many]
    assert offsets[0] is not None and 1 < len(set(offsets)) <= WATCHES_MAX


def test_small_groups_are_read_at_one_time_but_never_too_many_elections() -> None:
    offsets = read_offsets({f"{group}{number}": group for group in "abcd" for number in range(10)})
    assert offsets["a"] == offsets["b"] != offsets["c"] == offsets["d"]
