"""The watchdog devices of a process, fed by the driver; the kernel's side is a stand-in."""

import errno
from typing import Any

import pytest

from supervisor.adapters.runtime.driver import Driver
from supervisor.adapters.runtime.watchdogs import CAN_SET_TIMEOUT, CAN_STOP, HAS_PRETIMEOUT, Kernel, Watchdogs
from supervisor.core import actions as a
from supervisor.core import events as e
from supervisor.core import outcomes as o
from supervisor.core import requests as r
from supervisor.core.contender.creation import new_contender
from supervisor.core.contenders import Contenders
from supervisor.core.devices import Devices
from supervisor.core.frozen import replace
from supervisor.core.settings import ItemSettings, Wanted, Watchdog
from supervisor.core.watchdog import Act, Device
from tests.support.watchdog import FakeKernel
from tests.unit.core.play import ACQUIRE, CREATE, FREE, OURS, RELEASE, RENEW, RIVAL, RUN, SILENCE, WATCH, WON
from tests.unit.core.play import contender as election

DEVICE = Watchdog("/dev/watchdog")
WISHED = replace(DEVICE, required=False)
ABSENT = {"stat": errno.ENOENT}
KINDS = (a.PrepareWrite, a.StartHook, a.KillHook, a.StartRun, a.StopRun, a.Finished)
ROOM_S, RESET_S = 23.5, 29.25  # after the newest contact, with the figures of ``play``


class Node:
    """A process with one election and its device: Consul and the hooks do what the test says."""

    def __init__(
        self,
        kernel: Any,
        settings: ItemSettings,
        record: a.Record = a.EMPTY_RECORD,
        recorded: ItemSettings | None = None,
    ) -> None:
        self.kernel = kernel
        self.done: list[Any] = []
        self.told: list[e.WatchdogTried] = []
        self.state = ("closed", "")
        self.record = record
        self.woken_at = 0.0
        self.under_way: list[r.Request] = []
        made = new_contender(
            settings, spread=0.0, instance="i", record=record, recorded=recorded, now=self.now()
        )
        self.driver = Driver(Contenders([made]), self, dict.fromkeys(KINDS, self.done.append), kernel)
        self.happens(e.Tick())

    # --- the world ---------------------------------------------------------------------------------

    def now(self) -> float:
        return getattr(self.kernel, "now", 0.0)

    def request(self, request: r.Request) -> None:
        self.done.append(request)
        self.under_way.append(request)

    def write_record(self, write: a.WriteRecord) -> str:
        self.record = write.record
        self.done.append(write)
        return ""

    def wake(self, at: float) -> None:
        self.woken_at = at

    def observe(self, event: e.Event, actions: list[a.Action]) -> None:
        if isinstance(event, e.WatchdogTried):
            state = (event.device.state, event.device.why_not)
            if event.item or state != self.state:  # as the log tells it
                self.told.append(event)
            self.state = state
        self.done += [each for each in actions if isinstance(each, a.RoleChanged | a.NoticeChanged)]

    # --- the test ----------------------------------------------------------------------------------

    def happens(self, event: e.Event) -> None:
        if isinstance(event, e.Answered):
            self.under_way.remove(event.request)
        self.driver.dispatch(event)

    def last(self, kind: type[Any]) -> Any:
        return next(each for each in reversed(self.done) if isinstance(each, kind))

    def has(self, kind: type[Any]) -> bool:
        return any(isinstance(each, kind) for each in self.done)

    def on(self, kind: type[r.Request], outcome: o.Outcome) -> None:
        self.happens(e.Answered(self.last(kind), outcome))

    def tries(self) -> None:
        """Get a session and win the lock at once."""
        self.on(CREATE, o.Created("s"))
        self.on(RENEW, o.SessionAlive())
        self.on(WATCH, FREE)
        while not any(isinstance(each, r.Acquire) for each in self.under_way):
            self.kernel.now += 0.0625
            self.happens(e.Tick())
        self.on(ACQUIRE, WON)

    def ends(self, *, ok: bool = True) -> None:
        """End the hook that runs."""
        self.happens(e.HookEnded(self.last(a.StartHook), ok))

    def passes(self, until: float, *, confirms: bool = False) -> None:
        """Let time go by until then or until the reset; the process is woken when it asked to be.

        confirms: Consul confirms the lock whenever it is asked. False: it answers nothing.
        """
        while self.kernel.now < until and not self.kernel.has_reset:
            asked = [each for each in self.under_way if not isinstance(each, r.WatchKey)]
            ends_at = {each.at + (0.0 if confirms else each.timeout_s): each for each in asked}
            at = min([self.woken_at, *ends_at])
            self.kernel.now = min(max(at, self.kernel.now), until, self.kernel.fires_at or until)
            if self.kernel.has_reset:
                return
            if at in ends_at:
                self.happens(e.Answered(ends_at[at], self._answer(ends_at[at]) if confirms else SILENCE))
            else:
                self.happens(e.Tick())

    @staticmethod
    def _answer(request: r.Request) -> o.Outcome:
        if isinstance(request, r.ReadKey):
            return OURS
        return o.SessionAlive() if isinstance(request, r.RenewSession) else o.Done()

    @property
    def role(self) -> str:
        return self.driver.contenders.by_name["n"].role

    @property
    def told_states(self) -> list[str]:
        return [told.device.state for told in self.told]


def machine(**has: Any) -> FakeKernel:
    """Return a kernel with these attributes."""
    made = FakeKernel()
    for name, value in has.items():
        setattr(made, name, value)
    return made


def node(kernel: FakeKernel | None = None, watchdog: Watchdog = DEVICE, **more: Any) -> Node:
    return Node(kernel or FakeKernel(), election(watchdog=watchdog, **more))


def holder(kernel: FakeKernel | None = None, watchdog: Watchdog = DEVICE, **more: Any) -> Node:
    made = node(kernel, watchdog, **more)
    made.tries()
    if made.has(a.StartHook):
        made.ends()
    assert made.role == "holding"
    return made


def again(former: Node, after_s: float = 2.0) -> Node:
    """Kill the process, and return the next one, which reads the record."""
    former.kernel.dies()
    former.kernel.now += after_s
    settings = former.driver.contenders.by_name["n"].settings
    return Node(former.kernel, settings, former.record, settings)


# --- before on_acquire ------------------------------------------------------------------------------


def test_the_device_is_looked_at_before_the_node_contends_and_is_left_closed() -> None:
    kernel = FakeKernel()
    node(kernel)
    assert kernel.did() == ["open", "set", "stop", "close"]
    assert kernel.fires_at is None


def test_the_device_runs_before_on_acquire_begins() -> None:
    made = node()
    began: list[float | None] = []
    made.driver._effects = {**made.driver._effects, a.StartHook: lambda _: began.append(made.kernel.fires_at)}
    made.tries()
    assert began == [made.kernel.now + 10.0]


def test_the_device_runs_before_a_tenure_without_hooks_holds() -> None:
    made = holder(on_acquire=(), on_lose=())
    assert made.kernel.fires_at == made.kernel.now + 10.0


def test_a_tenure_is_on_record_before_its_device_is_opened() -> None:
    """Otherwise a process that starts after a crash would stop the device as one that nothing needs."""
    made, records = node(), list[a.Point]()
    opened = made.kernel.open

    def open_noted(path: str, flags: int) -> Any:
        records.append(made.record.step)
        return opened(path, flags)

    made.kernel.open = open_noted
    made.tries()
    assert records == [a.Point.TENURE]


def test_a_tenure_whose_device_fails_to_open_is_given_back_without_a_hook() -> None:
    made = node()
    made.kernel.fails = {"open": errno.EBUSY}
    made.tries()
    assert not made.has(a.StartHook)
    made.on(RELEASE, o.Done())
    assert made.role == "ineligible"
    assert "another program has it" in made.last(a.NoticeChanged).notice


def test_without_its_device_a_node_never_contends_and_names_the_reason() -> None:
    kernel = machine(fails=ABSENT)
    made = node(kernel)
    assert made.role == "ineligible"
    assert made.last(a.NoticeChanged).notice == (
        "no watchdog: cannot open /dev/watchdog: No such file or directory"
    )
    made.passes(60.0)
    assert not made.has(r.Acquire) and not made.has(r.RenewSession)


def test_a_device_that_appears_is_found_within_ten_seconds() -> None:
    kernel = machine(fails=ABSENT)
    made = node(kernel)
    kernel.fails = {}
    made.passes(11.0)
    assert made.role == "waiting" and made.last(a.NoticeChanged).notice == ""


def test_a_device_that_is_not_required_only_causes_a_warning_and_is_opened_once_it_appears() -> None:
    kernel = machine(fails=ABSENT)
    made = holder(kernel, WISHED)
    assert made.last(a.NoticeChanged).notice.startswith("no watchdog: ")
    kernel.fails = {}
    made.passes(11.0)
    assert kernel.is_open and made.last(a.NoticeChanged).notice == ""


# --- while it holds ---------------------------------------------------------------------------------


def test_a_holder_that_consul_confirms_is_never_reset() -> None:
    made = holder()
    made.passes(120.0, confirms=True)
    assert not made.kernel.has_reset and made.role == "holding"


def test_a_process_that_stands_still_lets_the_machine_be_reset() -> None:
    made = holder()
    made.kernel.now += 10.0
    assert made.kernel.has_reset


def test_on_lose_that_uses_all_of_its_time_in_a_silence_is_not_reset() -> None:
    made = holder()
    made.passes(ROOM_S + 0.1)
    assert made.role == "losing"
    made.passes(ROOM_S + 5.0)
    made.ends()
    assert not made.kernel.has_reset and made.kernel.fires_at is None
    assert made.kernel.did()[-2:] == ["stop", "close"]


def test_an_on_lose_that_does_not_end_is_reset_half_a_margin_before_a_rival_may_hold() -> None:
    made = holder()
    made.passes(100.0)
    assert made.kernel.has_reset and made.role == "losing"
    assert RESET_S - 0.1 <= made.kernel.now <= made.driver.contenders.devices.armed["n"][1] == RESET_S


def test_the_last_feed_before_a_reset_is_reported() -> None:
    made = holder()
    made.told.clear()
    made.passes(100.0)
    assert made.told_states == ["starves"]
    assert made.told[0].device.fires_at == made.kernel.fires_at


def test_a_contact_that_comes_late_feeds_the_device_at_once() -> None:
    made = holder()
    made.passes(ROOM_S - 0.1)
    assert made.told_states[-1] == "starves"
    made.passes(ROOM_S + 2.0, confirms=True)
    assert made.told_states[-1] == "armed" and made.role == "holding"


def test_an_item_that_is_stuck_and_keeps_its_lock_is_fed_while_consul_confirms_it() -> None:
    made = holder()
    made.happens(e.StepDownAsked("n", 0.0))
    made.ends(ok=False)
    assert made.role == "stuck"
    made.passes(120.0, confirms=True)
    assert not made.kernel.has_reset


def test_an_item_that_is_stuck_without_its_lock_is_reset() -> None:
    made = holder()
    made.passes(0.5, confirms=True)
    made.on(WATCH, OURS)
    made.on(WATCH, RIVAL)
    made.passes(1.0)
    made.ends(ok=False)
    assert made.role == "stuck"
    made.passes(100.0)
    assert made.kernel.has_reset and made.kernel.now < 11.0


@pytest.mark.parametrize("ends", [True, False])
def test_the_device_runs_until_the_end_of_a_process_that_kill_has_left(ends: bool) -> None:
    made = holder()
    made.passes(0.5, confirms=True)
    made.on(WATCH, OURS)
    made.on(WATCH, RIVAL)
    made.passes(1.0)
    made.happens(e.SurvivorsChanged("n", "KILL has not ended app (7)"))
    made.ends()
    assert made.kernel.is_open
    if ends:
        made.happens(e.SurvivorsChanged("n", ""))
        assert made.kernel.fires_at is None
    else:
        made.passes(100.0)
        assert made.kernel.has_reset and made.kernel.now < 11.0


def test_the_device_runs_until_the_end_of_on_lose_is_on_record() -> None:
    made = holder()
    made.happens(e.StepDownAsked("n", 0.0))
    full = made.write_record
    made.write_record = lambda write: "no space left"  # type: ignore[method-assign]
    made.ends()
    assert made.kernel.is_open
    made.write_record = full  # type: ignore[method-assign]
    made.passes(2.0)
    assert made.kernel.fires_at is None


def test_a_device_that_fails_is_opened_anew_and_the_tenure_goes_on() -> None:
    made = holder()
    made.kernel.fails = {"feed": errno.EIO}
    made.passes(1.5)
    assert made.told_states[-1] == "failed" and made.role == "holding"
    made.kernel.fails = {}
    made.passes(3.5)
    assert made.told_states[-1] == "armed" and made.kernel.is_open


# --- after a restart --------------------------------------------------------------------------------


def test_the_next_process_feeds_on() -> None:
    made = again(holder())
    assert made.kernel.is_open and made.kernel.fires_at == made.kernel.now + 10.0


def test_the_next_process_does_not_open_a_device_that_must_not_be_fed_any_more() -> None:
    former = holder()
    former.passes(19.0)
    former.kernel.did()
    made = again(former)
    assert made.kernel.did() == ["close"] or made.kernel.did() == []
    assert not made.kernel.is_open and made.kernel.fires_at is not None


@pytest.mark.parametrize(("of", "begins"), [({}, a.StartHook), ({"on_acquire": (), "run": RUN}, a.StartRun)])
@pytest.mark.parametrize("fails", [{}, {"open": errno.EACCES}], ids=["works", "fails"])
def test_what_the_next_process_begins_anew_waits_for_the_device(
    of: dict[str, Any], begins: type, fails: dict[str, int]
) -> None:
    """The former process was killed before it opened the device, and too long ago to feed it at the start."""
    former = node(watchdog=replace(DEVICE, timeout_s=15.0), **of)
    former.tries()
    kernel = machine(now=former.kernel.now + 16.0, fails=fails)
    settings = former.driver.contenders.by_name["n"].settings
    made = Node(kernel, settings, former.record, settings)
    began: list[tuple[type, float | None]] = []
    noted: dict[Any, Any] = {
        kind: lambda action: began.append((type(action), kernel.fires_at))
        for kind in (a.StartHook, a.StartRun)
    }
    made.driver._effects = {**made.driver._effects, **noted}
    made.on(RENEW, o.SessionAlive())
    made.on(r.ReadKey, OURS)
    assert began == ([(a.StartHook, None)] if fails else [(begins, kernel.now + 15.0)])
    assert not fails or made.role == "losing"


def test_the_next_process_stops_the_device_once_nothing_is_guarded() -> None:
    former = holder()
    former.passes(19.0)
    made = again(former)
    made.passes(ROOM_S + 1.0)
    assert made.role == "losing" and made.kernel.fires_at is not None
    made.ends()
    assert made.kernel.fires_at is None and not made.kernel.has_reset


def test_a_process_that_finds_nothing_on_record_stops_a_device_that_runs() -> None:
    kernel = FakeKernel()
    kernel.open("/dev/watchdog", 0)
    kernel.dies()
    assert kernel.fires_at is not None
    node(kernel)
    assert kernel.fires_at is None


def test_a_tenure_of_another_boot_is_guarded_by_no_device() -> None:
    """Otherwise an on_lose that fails would reset the machine again after each boot."""
    former = holder(watchdog=replace(DEVICE, timeout_s=4.0))  # it would fit into lose_time
    former.kernel.dies()
    former.kernel.fires_at = None
    settings = former.driver.contenders.by_name["n"].settings
    made = Node(former.kernel, settings, replace(former.record, foreign=True), settings)
    made.ends(ok=False)
    assert made.role == "stuck"
    made.passes(100.0)
    assert not made.kernel.has_reset


def test_a_device_is_not_stopped_while_a_damaged_record_has_its_on_lose() -> None:
    former = holder()
    former.kernel.dies()
    former.kernel.now += 2.0
    settings = former.driver.contenders.by_name["n"].settings
    damaged = a.Record(a.Point.LOSING, session="unreadable-1", reason=a.Reason.CRASHED, foreign=True)
    made = Node(former.kernel, settings, damaged, settings)
    assert made.kernel.fires_at is not None
    made.ends()
    assert made.kernel.fires_at is None


def test_a_lock_that_leaves_the_device_no_time_is_given_back_and_tried_again() -> None:
    made = node(lock_delay_s=9.0, on_lose=())
    made.kernel.did()
    made.tries()
    assert made.kernel.did() == []
    assert not made.has(a.StartHook) and made.told[-1].device.why_not.startswith("its timeout is longer")
    made.on(RELEASE, o.Done())
    assert made.role == "waiting"


def test_a_lock_that_leaves_the_device_no_time_harms_no_other_item() -> None:
    made = holder()
    another = replace(election(watchdog=DEVICE), name="b")
    made.driver.contenders.by_name["b"] = new_contender(another, spread=0.0, instance="i")
    made.driver.contenders.devices.want(a.Arm("b", DEVICE, made.now() + 5.0))
    made.happens(e.Tick())
    assert made.role == "holding" and made.told[-1].item == "b"
    made.happens(e.StepDownAsked("n", 0.0))
    made.ends()
    made.on(RELEASE, o.Done())
    assert made.role == "waiting"


@pytest.mark.parametrize("item", ["", "n"])
def test_a_process_that_stood_still_after_the_decision_feeds_no_device(item: str) -> None:
    """The device would fire too late for the tenure, and one that begins would run without it."""
    kernel, closed = FakeKernel(), Device(10.0)
    tried = Watchdogs(kernel).tend(a.Tend("/dev/watchdog", Act.OPEN, closed, item, by=5.0), 5.1)
    assert not kernel.did() and (tried.device == closed, bool(tried.device.why_not)) == (not item, bool(item))


def test_two_tenures_that_begin_at_once_share_the_device() -> None:
    devices = Devices()
    for item in "ab":
        devices.want(a.Arm(item, DEVICE, 30.0))
    (first,) = devices.tend((), 0.0)
    assert (first.item, first.act) == ("a", Act.OPEN) and not list(devices.tend((), 0.0))
    devices.tried(e.WatchdogTried(first.path, replace(first.device, is_open=True, fed_at=0.0), "a"))
    (second,) = devices.tend((), 0.0)
    assert (second.item, second.act) == ("b", None)


# --- another file -----------------------------------------------------------------------------------


def test_a_new_item_learns_of_a_device_that_has_failed_before_it_contends() -> None:
    kernel = machine(fails=ABSENT)
    made = node(kernel)
    another = replace(election(watchdog=DEVICE), name="b")
    made.driver.contenders.by_name["b"] = new_contender(another, spread=0.0, instance="i")
    made.happens(e.HooksChecked("b", ()))
    assert not made.driver.contenders.by_name["b"].is_fit


def reload(made: Node, settings: ItemSettings) -> None:
    made.happens(e.ConfigLoaded((Wanted(settings, 0.0),), "j"))


def test_a_watchdog_that_a_file_adds_guards_from_the_next_tenure_on() -> None:
    made = Node(FakeKernel(), election())
    made.tries()
    made.ends()
    reload(made, election(watchdog=DEVICE))
    made.passes(5.0, confirms=True)
    assert not made.kernel.is_open
    made.happens(e.StepDownAsked("n", 0.0))
    made.ends()
    assert made.driver.contenders.by_name["n"].settings.watchdog == DEVICE
    assert made.kernel.did() == ["open", "set", "stop", "close"]


def test_a_watchdog_that_a_file_removes_guards_to_the_end_of_the_tenure() -> None:
    made = holder()
    reload(made, election())
    made.passes(5.0, confirms=True)
    assert made.kernel.is_open
    made.happens(e.StepDownAsked("n", 0.0))
    made.ends()
    assert made.kernel.fires_at is None and not made.driver.contenders.devices.armed


def test_a_timeout_that_a_file_changes_counts_from_the_next_tenure_on() -> None:
    made = holder()
    reload(made, election(watchdog=replace(DEVICE, timeout_s=9.0)))
    made.passes(5.0, confirms=True)
    assert made.kernel.has_s == 10
    made.happens(e.StepDownAsked("n", 0.0))
    made.ends()
    made.passes(5.5, confirms=True)
    made.kernel.now = 6.0
    made.happens(e.Tick())
    made.tries()
    assert made.kernel.is_open and made.kernel.has_s == 9


def test_a_device_opened_with_a_longer_timeout_is_fed_again_once_the_lock_is_confirmed() -> None:
    made = holder()
    contenders = made.driver.contenders
    shorter = replace(contenders.by_name["n"].settings, watchdog=replace(DEVICE, timeout_s=5.0))
    contenders.by_name["n"] = replace(contenders.by_name["n"], settings=shorter)
    made.passes(21.0)
    assert made.told_states == ["armed", "starves"]
    made.passes(60.0, confirms=True)
    assert not made.kernel.has_reset and made.role == "holding"


@pytest.mark.parametrize("remedy", [Watchdog("/dev/watchdog", 16.0), Watchdog("/dev/watchdog1"), None])
def test_a_file_that_mends_or_drops_the_watchdog_lets_the_node_contend_at_once(
    remedy: Watchdog | None,
) -> None:
    kernel = machine(rounds_to_s=16)
    made = node(kernel)
    assert made.role == "ineligible"
    if remedy is not None and remedy.device != DEVICE.device:
        kernel.rounds_to_s = 1
    reload(made, election(watchdog=remedy))
    assert made.role == "waiting" and not made.last(a.NoticeChanged).notice


def test_a_file_that_does_not_mend_the_watchdog_keeps_the_node_ineligible() -> None:
    made = node(machine(rounds_to_s=16))
    reload(made, election(watchdog=replace(DEVICE, timeout_s=9.0)))
    assert made.role == "ineligible" and "not the 9s" in made.last(a.NoticeChanged).notice


# --- the kernel's device ----------------------------------------------------------------------------


def refusal(kernel: FakeKernel) -> str:
    made = node(kernel)
    assert made.role == "ineligible" and kernel.fires_at is None
    notice: str = made.last(a.NoticeChanged).notice
    return notice.removeprefix("no watchdog: cannot open /dev/watchdog: ")


def test_a_device_that_cannot_be_stopped_is_never_opened() -> None:
    kernel = machine(nowayout=True)
    assert refusal(kernel).startswith("its driver has nowayout=1")
    assert kernel.did() == []


WRONG_TIMEOUT = "Fake Watchdog has a timeout of {}s, and not the 10s of the file"
UNSUITABLE: dict[str, tuple[dict[str, Any], str]] = {
    "stops when its process dies": (
        {"options": CAN_SET_TIMEOUT},
        "Fake Watchdog has no magic close, so it stops when this process dies",
    ),
    "another program has it": (
        {"fails": {"open": errno.EBUSY}},
        "another program has it, such as systemd with RuntimeWatchdogSec",
    ),
    "refuses the timeout": ({"fails": {"set": errno.EINVAL}}, "Invalid argument"),
    "rounds the timeout up": ({"rounds_to_s": 16}, WRONG_TIMEOUT.format(16)),
    "has a longer timeout": ({"options": CAN_STOP, "has_s": 60}, WRONG_TIMEOUT.format(60)),
    "has a shorter timeout": ({"options": CAN_STOP, "has_s": 3}, WRONG_TIMEOUT.format(3)),
}


@pytest.mark.parametrize(("has", "why"), UNSUITABLE.values(), ids=UNSUITABLE)
def test_an_unsuitable_device_is_refused_and_stopped(has: dict[str, Any], why: str) -> None:
    assert refusal(machine(**has)) == why


def test_a_device_with_a_fixed_timeout_is_used_as_far_as_it_fits() -> None:
    made = holder(FakeKernel(CAN_STOP, has_s=7))
    assert made.driver.contenders.devices.by_path["/dev/watchdog"].timeout_s == 7.0


def test_a_pretimeout_is_set_to_none() -> None:
    kernel = machine(options=CAN_STOP | CAN_SET_TIMEOUT | HAS_PRETIMEOUT, pretimeout_s=5)
    holder(kernel)
    assert kernel.pretimeout_s == 0


def test_a_device_that_cannot_be_stopped_in_order_is_tried_again() -> None:
    kernel = machine(fails={"stop": errno.EIO})
    made = node(kernel)
    assert kernel.fires_at is not None
    kernel.fails = {}
    made.passes(2.0)
    assert kernel.fires_at is None


@pytest.mark.parametrize("path", ["/nowhere/watchdog", "/dev/null", __file__])
def test_a_path_that_is_no_watchdog_is_refused_by_the_real_kernel(path: str) -> None:
    made = Node(Kernel(), election(watchdog=Watchdog(path)))
    assert made.last(a.NoticeChanged).notice.startswith(f"no watchdog: cannot open {path}: ")


def test_the_tenure_that_needs_the_earliest_reset_decides() -> None:
    made = holder()
    contenders = made.driver.contenders
    contenders.devices.armed["another"] = ("/dev/watchdog", 12.0)
    made.passes(100.0)
    assert made.kernel.has_reset and 11.9 <= made.kernel.now <= 12.0
