"""How the items of a file go about it, as many."""

import asyncio

import requests

from supervisor.config import Config, ConsulSettings, LogSettings
from supervisor.consul.client import START_SPACING_S, PendingAnswer, wanted_of
from supervisor.consul.shared import WATCHES_MAX
from supervisor.core.events import Answered
from supervisor.core.outcomes import Outcome, SessionAlive, Unknown
from supervisor.core.requests import RenewSession
from supervisor.core.settings import ElectionSettings, SessionSettings
from supervisor.transport import ExchangeFailed, FailureKind


def config(items: int) -> Config:
    settings = [
        ElectionSettings(f"e{number:03}", f"k/{number:03}", b"", SessionSettings("s"))
        for number in range(items)
    ]
    return Config(ConsulSettings("http://127.0.0.1:8500"), LogSettings(), tuple(settings), "")


def test_items_begin_one_after_the_other() -> None:
    assert [each.delay_s for each in wanted_of(config(3))] == [0.0, START_SPACING_S, 2 * START_SPACING_S]


def test_what_goes_on_keeps_nobody_waiting() -> None:
    """A reload that adds one of many begins it at once."""
    wanted = wanted_of(config(4), going_on=["e000", "e001", "e002"])
    assert [each.delay_s for each in wanted] == [0.0] * 4


def test_each_has_a_pace_of_its_own_and_those_that_share_a_question_one_phase() -> None:
    few, many = wanted_of(config(WATCHES_MAX)), wanted_of(config(2 * WATCHES_MAX))
    assert {each.read_offset for each in few} == {None}
    assert len({each.spread for each in many}) == len(many)
    offsets = [each.read_offset for each in many]
    assert offsets[0] is not None and 1 < len(set(offsets)) <= WATCHES_MAX


def test_an_exchange_is_told_once_whatever_becomes_of_it_after_its_answer() -> None:
    """An answer that comes with the deadline is heard, and then the exchange ends without one."""

    async def fails() -> requests.Response:
        raise ExchangeFailed(FailureKind.TIMEOUT, "too late")

    async def words(failure: ExchangeFailed) -> Outcome:
        return Unknown(str(failure))

    told: list[Answered] = []
    request = RenewSession("e", 0.0, 1.0, "s", SessionSettings("n"))
    answer = PendingAnswer(request, told.append, lambda response: SessionAlive(), words)
    answer.on_response(requests.Response())
    asyncio.run(answer.run(fails()))
    assert told == [Answered(request, SessionAlive())]
    silent = PendingAnswer(request, told.append, lambda response: SessionAlive(), words)
    asyncio.run(silent.run(fails()))
    assert told[1:] == [Answered(request, Unknown("too late"))]
