"""The write that a hand-over waits for is prepared while there is nothing else to do."""

from supervisor.core import events as e
from supervisor.core import requests as r
from tests.unit.core.play import RUN, acquiring, holding


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
