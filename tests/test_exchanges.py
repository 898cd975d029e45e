"""How the items of a file go about it, as many."""

from supervisor.config import Config, ConsulSettings, LogSettings
from supervisor.core.settings import ElectionSettings, SessionSettings
from supervisor.exchanges import BEGIN_EVERY_S, wanted_of
from supervisor.sharing import WATCHES_MAX


def config(items: int) -> Config:
    settings = [
        ElectionSettings(f"e{number:03}", f"k/{number:03}", b"", SessionSettings("s"))
        for number in range(items)
    ]
    return Config(ConsulSettings("http://127.0.0.1:8500"), LogSettings(), tuple(settings), "")


def test_items_begin_one_after_the_other() -> None:
    assert [each.delay_s for each in wanted_of(config(3))] == [0.0, BEGIN_EVERY_S, 2 * BEGIN_EVERY_S]


def test_what_goes_on_keeps_nobody_waiting() -> None:
    """A reload that adds one of many begins it at once."""
    wanted = wanted_of(config(4), going_on=["e000", "e001", "e002"])
    assert [each.delay_s for each in wanted] == [0.0] * 4


def test_each_has_a_pace_of_its_own_and_those_that_share_a_question_one_phase() -> None:
    few, many = wanted_of(config(WATCHES_MAX)), wanted_of(config(2 * WATCHES_MAX))
    assert {each.phase for each in few} == {None}
    assert len({each.spread for each in many}) == len(many)
    phases = [each.phase for each in many]
    assert phases[0] is not None and 1 < len(set(phases)) <= WATCHES_MAX
