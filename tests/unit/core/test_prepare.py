"""The write that a hand-over waits for is prepared while there is nothing else to do."""

from supervisor.core import events as e
from supervisor.core import outcomes as o
from supervisor.core import requests as r
from tests.unit.core.play import ACQUIRE, FREE, RIVAL, RUN, WATCH, WON, acquiring, behind, holding, waiting


def test_each_watch_of_a_contender_prepares_the_next_acquire() -> None:
    play = waiting()
    (ready,) = play.prepared  # as soon as there is a session
    assert isinstance(ready, r.Acquire) and ready.session == "s"
    play.does(0.2, WATCH, RIVAL, "watch 9, info rival")
    assert len(play.prepared) == 2
    play.does(0.3, WATCH, o.KeyView(10, "rival", b"new", 3, 10, 1), "watch 10")
    assert len(play.prepared) == 3


def test_a_refused_acquire_is_prepared_for_the_next_attempt() -> None:
    play = behind()
    play.does(1.0, WATCH, o.KeyView(10), "acquire s, watch 10")
    play.prepared.clear()
    play.does(1.1, ACQUIRE, o.LockDelayed(), "")
    assert len(play.prepared) == 1


def test_the_acquire_that_is_sent_is_the_prepared_one() -> None:
    play = behind()
    play.does(1.0, WATCH, o.KeyView(10), "acquire s, watch 10")
    sent, ready = play.last(r.Acquire), play.prepared[0]
    assert isinstance(ready, r.Acquire)
    assert (sent.session, sent.key, sent.value) == (ready.session, ready.key, ready.value)


def test_no_acquire_is_prepared_without_a_session() -> None:
    play = waiting()
    play.prepared.clear()
    play.on(0.2, r.WatchKey, RIVAL)
    assert play.prepared
    play.prepared.clear()
    play.happens(4.6, e.Tick())
    play.on(4.7, r.RenewSession, o.SessionGone())
    play.on(4.8, r.WatchKey, o.KeyView(10, "rival", b"new", 3, 10, 1))
    assert play.prepared == []


def test_on_lose_prepares_the_release_with_the_value_in_the_key() -> None:
    play = waiting()
    play.on(0.2, r.WatchKey, FREE)
    play.on(0.3, r.Acquire, WON)
    play.ends(0.4, "holding")
    play.prepared.clear()
    play.happens(0.5, e.StopAsked())
    (ready,) = play.prepared
    assert isinstance(ready, r.Release) and (ready.session, ready.value) == ("s", b"me")
    play.ends(0.6, "release s, waiting")
    assert play.last(r.Release).value == ready.value


def test_without_on_lose_the_release_is_prepared_while_the_run_child_runs() -> None:
    """Each renewal prepares the release anew, because it uses the connection that was opened ahead."""
    play = acquiring(on_lose=(), run=RUN)
    play.prepared.clear()
    play.ends(0.4, "start run, holding")
    assert [type(each) for each in play.prepared] == [r.Release]
    play.prepared.clear()
    renewals = len(play.times(r.RenewSession))
    play.passes(20.0)
    assert len(play.prepared) == len(play.times(r.RenewSession)) - renewals > 1
    play.prepared.clear()
    play.happens(20.0, e.StopAsked())
    (ready,) = play.prepared
    assert isinstance(ready, r.Release) and ready.session == "s"


def test_a_holder_with_on_lose_or_without_a_run_child_prepares_no_release_while_it_holds() -> None:
    for play in (holding(run=RUN), holding()):
        play.prepared.clear()
        play.passes(20.0)
        assert play.times(r.RenewSession) and play.prepared == []
