"""An answer that only confirms makes nothing due; any other one is followed by all that is."""

from dataclasses import replace

from supervisor.core import actions as a
from supervisor.core import events as e
from supervisor.core import outcomes as o
from supervisor.core.contender.step import step
from tests.unit.core import play as elections
from tests.unit.core.play import ACQUIRE, FREE, OURS, READ, RENEW, SILENCE, WATCH, WON

FOREIGN = o.KeyView(5, None, b"x", 3, 5, 0, foreign_flags=7)


def test_an_answer_that_changes_the_view_confirms_nothing() -> None:
    play = elections.waiting()
    play.does(0.2, WATCH, FOREIGN, "watch 5, notice: the key belongs to another program and is left alone")
    play.does(4.6, "renew s")
    play.does(5.0, RENEW, SILENCE, "")
    play.does(play.deadline, "renew s")
    play.does(play.now + 0.1, RENEW, o.SessionAlive(), "read")
    (changed,) = play.on(play.now + 0.1, READ, replace(FOREIGN, foreign_flags=8))
    assert isinstance(changed, a.NoticeChanged) and "its flags are 8," in changed.notice


def test_a_renewal_that_is_answered_late_is_followed_by_the_next() -> None:
    play = elections.behind()
    play.does(4.6, "renew s")
    play.does(9.2, RENEW, o.SessionAlive(), "renew s")


def test_on_acquire_begins_in_the_step_that_brings_fresh_news() -> None:
    """The hook waits for no record: that of the newest contact comes behind the start of the hook."""
    play = elections.waiting()
    play.on(0.2, WATCH, FREE)
    play.on(10.0, ACQUIRE, WON)
    assert not any(isinstance(action, a.StartHook) for _, action in play.log)
    _, actions = step(play.contender, e.Answered(play.pending(READ), OURS), 10.1)
    assert [type(action) for action in actions] == [a.StartHook, a.WriteRecord]
