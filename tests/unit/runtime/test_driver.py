"""A step of the driver: actions in their order, records before their dependents, and a stall noticed."""

from typing import Any

from supervisor.adapters.runtime.driver import Driver, Effects
from supervisor.core import actions as a
from supervisor.core import events as e
from supervisor.core import outcomes as o
from supervisor.core import requests as r
from supervisor.core.contender.creation import new_contender
from supervisor.core.contenders import Contenders
from tests.unit.core.play import FREE, WON, contender, hook


class Stage:
    """A world that only notes each action, and whose disk may be full."""

    def __init__(self) -> None:
        self.at = 0.0
        self.done: list[Any] = []
        self.observed: list[e.Event] = []
        self.woken_at: list[float] = []
        self.why_not = ""

    def now(self) -> float:
        return self.at

    def take_down(self, action: Any) -> None:
        self.done.append(action)

    def request(self, request: r.Request) -> None:
        self.take_down(request)

    def write_record(self, write: a.WriteRecord) -> str:
        self.done.append(write)
        return self.why_not

    def wake(self, at: float) -> None:
        self.woken_at.append(at)

    def observe(self, event: e.Event, actions: list[a.Action]) -> None:
        self.observed.append(event)

    def last(self, kind: type[Any]) -> Any:
        return next(action for action in reversed(self.done) if isinstance(action, kind))

    def kinds(self) -> list[str]:
        """Return the kinds of the actions since the last call."""
        done, self.done = self.done, []
        return [type(action).__name__ for action in done if not isinstance(action, a.PrepareWrite)]


def driven() -> tuple[Driver, Stage]:
    """Return a driver whose election has sent its acquire, and a watch while the acquire is silent."""
    stage = Stage()
    driver = driven_by(stage)
    driver.dispatch(e.Answered(stage.last(r.WatchKey), FREE))
    stage.at = 0.0625
    driver.dispatch(e.Tick())
    return driver, stage


def driven_by(stage: Stage, **more: Any) -> Driver:
    """Return a driver whose election has a session and does not know yet that the key is free."""
    kinds = (a.PrepareWrite, a.StartHook, a.KillHook, a.StartRun, a.StopRun, a.Finished)
    effects: Effects = dict.fromkeys(kinds, stage.take_down)
    driver = Driver(Contenders([new_contender(contender(**more), spread=0.0, instance="i")]), stage, effects)
    driver.dispatch(e.Tick())
    driver.dispatch(e.Answered(stage.last(r.CreateSession), o.Created("s")))
    driver.dispatch(e.Answered(stage.last(r.RenewSession), o.SessionAlive()))
    return driver


def test_an_acquire_is_sent_before_the_rest_of_its_step_is_decided() -> None:
    """The run of on_change that follows in the same step has not begun yet when the acquire is sent."""
    stage = Stage()
    driver = driven_by(stage, on_change=(hook("told"),))
    told: list[bool] = []

    def send(request: r.Request) -> None:
        stage.take_down(request)
        told.append(driver.contenders.by_name["n"].change.notified is not None)

    stage.request = send  # type: ignore[method-assign]
    driver.dispatch(e.Answered(stage.last(r.WatchKey), FREE))
    assert stage.kinds()[-2:] == ["Acquire", "StartHook"]
    assert told == [False] and driver.contenders.by_name["n"].change.notified is not None


def test_a_record_is_written_before_the_hook_that_waits_for_it() -> None:
    driver, stage = driven()
    acquire = stage.last(r.Acquire)
    stage.kinds()
    driver.dispatch(e.Answered(acquire, WON))
    assert stage.kinds()[:2] == ["WriteRecord", "StartHook"]


def test_a_record_that_cannot_be_written_is_answered_in_the_same_step() -> None:
    driver, stage = driven()
    acquire = stage.last(r.Acquire)
    stage.kinds()
    stage.why_not = "no space left"
    driver.dispatch(e.Answered(acquire, WON))
    assert "StartHook" not in stage.kinds()
    written = [event for event in stage.observed if isinstance(event, e.RecordWritten)]
    assert written[-1].why_not == "no space left"


def test_observers_get_each_event_in_its_order() -> None:
    driver, stage = driven()
    assert [type(event) for event in stage.observed] == [
        e.Tick,
        e.Answered,
        e.RecordWritten,
        e.Answered,
        e.Answered,
        e.Tick,
    ]


def test_the_driver_wakes_at_the_deadline_and_each_second_at_the_latest() -> None:
    driver, stage = driven()
    assert stage.woken_at[0] == 1.0
    stage.at = 1.0
    driver.dispatch(e.Tick())
    assert stage.woken_at[-1] == 2.0


def test_a_tick_that_comes_early_arms_the_timer_again() -> None:
    driver, stage = driven()
    stage.at = 0.9999
    before = len(stage.woken_at)
    driver.dispatch(e.Tick())
    assert len(stage.woken_at) == before + 1


def test_a_step_that_comes_far_too_late_begins_with_a_stall() -> None:
    driver, stage = driven()
    acquire = stage.last(r.Acquire)
    stage.at = 2.5625
    stage.observed.clear()
    driver.dispatch(e.Answered(acquire, WON))
    assert stage.observed[0] == e.Stalled(1.5)
    assert isinstance(stage.observed[1], e.Answered)


def test_a_stall_is_reported_once_however_many_events_waited_behind_it() -> None:
    """If each of 1,000 elections examined 1,000 leases, the loop would stall for longer than before."""
    driver, stage = driven()
    acquire, watch = stage.last(r.Acquire), stage.last(r.WatchKey)
    stage.at = 2.5625
    driver.dispatch(e.Answered(acquire, WON))
    stage.at = 2.6
    driver.dispatch(e.Answered(watch, o.Unknown("")))
    assert [event for event in stage.observed if isinstance(event, e.Stalled)] == [e.Stalled(1.5)]
    assert stage.woken_at[-1] > 2.5


def test_a_step_in_time_is_no_stall() -> None:
    driver, stage = driven()
    stage.at = 1.9
    driver.dispatch(e.Tick())
    assert not [event for event in stage.observed if isinstance(event, e.Stalled)]
