"""An order for the whole fleet, as a contender takes it."""

from supervisor.core import actions as a
from supervisor.core import events as e
from supervisor.core import outcomes as o
from supervisor.core.contender.creation import contender_of, new_contender
from supervisor.core.contender.lifecycle import depart
from supervisor.core.contenders import Contenders, Successor
from supervisor.core.settings import Wanted
from tests.unit.core import play as p


def test_nothing_is_tried_before_the_orders_are_known() -> None:
    play = p.Play(p.contender())
    wanted = Wanted(p.contender(), spread=0.0, withheld=None)
    play.contender = contender_of(wanted, instance="i", now=0.0)
    play.does(0.0, "create, watch 0 consistently")
    play.does(0.1, p.CREATE, o.Created("s"), "")
    play.does(0.2, p.WATCH, p.FREE, "watch 5")
    assert play.role == "waiting"
    play.hears(0.3, e.OrderSeen("n", withheld=False), "acquire s")


def test_a_waiter_gives_its_session_up_and_a_holder_goes_on() -> None:
    play = p.behind()
    play.hears(2.0, e.OrderSeen("n", withheld=True), "destroy s, paused")
    play.passes(20.0)
    assert not play.times(p.ACQUIRE)
    play.hears(20.0, e.OrderSeen("n", withheld=False), "create, waiting")
    holder = p.holding()
    holder.hears(2.0, e.OrderSeen("n", withheld=True), "")
    assert holder.role == "holding"


def test_a_step_down_that_names_a_session_ends_the_tenure_of_that_session_alone() -> None:
    play = p.holding()
    play.hears(2.0, e.StepDownAsked("n", 1.0, session="another"), "")
    assert play.role == "holding"
    play.happens(2.1, e.StepDownAsked("n", 1.0, session="s"))
    assert play.role == "losing"


def test_an_order_that_is_seen_before_a_successor_begins_counts_for_it() -> None:
    left = a.Record(a.Point.SESSION, "k", "old")
    before = depart(new_contender(p.contender(), spread=0.5, instance="i", record=left, now=0.0), 0.0)
    wanted = Wanted(p.contender(on_lose=()), spread=0.0, withheld=None)
    heir = contender_of(wanted, instance="i", now=0.0)
    node = Contenders([before], [Successor(heir, frozenset({"n"}))])
    node.step(e.OrderSeen("n", withheld=True), 0.1)
    assert node.not_begun["n"].withheld is True and node.by_name["n"].withheld is False
