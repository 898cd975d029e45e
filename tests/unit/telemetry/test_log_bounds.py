"""Repeated failures are logged once: an hour of outage with 100 items is a handful of lines.

None of the lines that an operator must read is lost with the repeated ones.
"""

import itertools
import random
from collections import Counter
from collections.abc import Callable
from dataclasses import replace

import pytest

from supervisor.adapters.hooks.output import HookLine
from supervisor.adapters.runtime.driver import Driver
from supervisor.core.actions import Action, Finished, StartHook, WriteRecord
from supervisor.core.contender.creation import new_contender
from supervisor.core.contenders import Contenders
from supervisor.core.events import Answered, Event, HookEnded, Tick
from supervisor.core.outcomes import Created, Denied, Done, KeyView, Outcome, SessionAlive, Unknown, Won
from supervisor.core.requests import Acquire, CreateSession, ReadKey, RenewSession, Request, WatchKey
from supervisor.core.settings import SessionSettings
from supervisor.reporting.telemetry.log import OUTPUT_LINES_MAX
from supervisor.reporting.telemetry.log.recurring import FORGET_S, NAMES_MAX, REMIND_S, REPEAT_S
from tests.models.simulation.schedule import Schedule
from tests.support.log_lines import undocumented
from tests.support.log_written import Written
from tests.unit.core.play import contender

ITEMS = [f"e{number:02}" for number in range(100)]
HOUR_S = 3600
EACH_S = 5
LINES_MAX = 5 * 60  # five a minute: two troubles alternate, each with a begin and an end
FAILURES = HOUR_S * len(ITEMS) // EACH_S
REFUSED: Outcome = Unknown("cannot reach 127.0.0.1:8500: connection refused")
TIMED_OUT: Outcome = Unknown("cannot reach 127.0.0.1:8500: no answer to connect")
GARBLED: Outcome = Unknown("not an answer of Consul: no JSON")
DENIED: Outcome = Denied("403 Permission denied")
WELL: Outcome = KeyView(1)


def read(item: str = "app") -> ReadKey:
    return ReadKey(item, 0.0, 1.0, "key")


def renewal(item: str = "app") -> RenewSession:
    return RenewSession(item, 0.0, 1.0, "session", SessionSettings("n"))


def answered(written: Written, request: Request, outcome: Outcome) -> None:
    written.on_step(Answered(request, outcome), ())


def an_hour(peer: Callable[[int, int], Outcome]) -> Written:
    """Log an hour of 100 items: 20 read each second, and the peer answers by second and number."""
    written = Written(level="info")
    reads = [read(item) for item in ITEMS]
    for second in range(HOUR_S):
        written.now = float(second)
        for number in range(second % EACH_S, len(ITEMS), EACH_S):
            answered(written, reads[number], peer(second, number))
    return written


# --- an hour of a hundred items ---------------------------------------------------------------------


@pytest.mark.parametrize(
    "outcome", [REFUSED, TIMED_OUT, GARBLED, DENIED], ids=lambda outcome: outcome.why[:12]
)
def test_an_hour_of_one_trouble_is_about_ten_lines(outcome: Outcome) -> None:
    written = an_hour(lambda second, number: outcome)
    first, second, *more = written.lines()
    assert first["item"] == "e00" and "items" not in first
    assert (second["items"], second["names"]) == (len(ITEMS), ITEMS[:NAMES_MAX])
    assert len(more) == HOUR_S // REMIND_S - 1 + (HOUR_S % REMIND_S > 0)
    logged = sum(line.get("times_unsaid", 0) + 1 for line in written.lines())
    assert FAILURES - REMIND_S * len(ITEMS) / EACH_S < logged <= FAILURES
    assert undocumented(written.lines()) == []


def test_the_end_of_a_trouble_is_logged_once_with_its_duration() -> None:
    """The outage lasts until the first request that was answered was sent, and not until its late answer."""
    written = an_hour(lambda second, number: REFUSED)
    written.now = HOUR_S + 29.0
    for item in ITEMS:
        answered(written, ReadKey(item, float(HOUR_S), 1.0, "key"), WELL)
    (end,) = [line for line in written.lines() if line["event"] == "consul-answers"]
    assert written.lines()[-1] == end and end["after"] == "consul-silent"
    assert (end["items"], end["duration_s"], end["failures"]) == (len(ITEMS), HOUR_S, FAILURES)


@pytest.mark.long
@pytest.mark.parametrize(
    "peer",
    [
        pytest.param(lambda second, number: (REFUSED, TIMED_OUT)[second % 2], id="reasons take turns"),
        pytest.param(lambda second, number: (REFUSED, DENIED, GARBLED)[(second + number) % 3], id="kinds do"),
        pytest.param(lambda second, number: (REFUSED, WELL)[second // EACH_S % 2], id="there and away"),
        pytest.param(
            lambda second, number: (REFUSED, WELL)[(second // EACH_S + number) % 2], id="each in turn"
        ),
        pytest.param(lambda second, number: Unknown(f"500 at index {second}"), id="a number that grows"),
        pytest.param(lambda second, number: (REFUSED, WELL)[second % 70 > 20], id="20 seconds of 70"),
    ],
)
def test_alternating_troubles_are_at_most_a_few_lines_a_minute(peer: Callable[[int, int], Outcome]) -> None:
    """Two troubles of all items may alternate, and each has a begin and an end in a minute."""
    lines = an_hour(peer).lines()
    assert 0 < len(lines) <= LINES_MAX, len(lines)
    assert undocumented(lines) == []


def test_random_troubles_are_at_most_a_few_lines_a_minute() -> None:
    dice = random.Random(1)
    outcomes = [REFUSED, TIMED_OUT, GARBLED, DENIED, WELL, WELL]
    assert len(an_hour(lambda second, number: dice.choice(outcomes)).lines()) <= LINES_MAX


# --- what the lines of a trouble say ----------------------------------------------------------------


def test_the_first_denied_item_is_named_at_once_and_the_others_soon() -> None:
    """An operator needs the first name at once, and the others within a minute."""
    written = Written(level="info")
    for second in range(int(REPEAT_S) + 20):
        written.now = float(second)
        answered(written, renewal("one"), DENIED)
        if second >= 10:
            answered(written, read("two"), DENIED)
    first, second_line = written.lines()
    assert (first["event"], first["level"], first["item"]) == ("consul-denied", "error", "one")
    assert (second_line["items"], second_line["names"]) == (2, ["one", "two"])
    assert second_line["kinds"] == ["read key", "renew session"]


def test_a_trouble_that_ended_within_the_minute_is_counted_in_the_next_line() -> None:
    written = Written(level="info")
    for at in (0.0, 10.0, 20.0, REPEAT_S + 1):
        written.now = at
        answered(written, renewal(), REFUSED)
        answered(written, renewal(), SessionAlive())
    assert written.events() == ["consul-silent", "consul-answers"] * 2
    assert written.lines()[2]["times_unsaid"] == 2


def test_a_trouble_of_a_request_that_is_never_repeated_ends_after_some_time() -> None:
    """A release that got no answer is never repeated once a read has shown its effect."""
    written = Written(level="info")
    answered(written, renewal(), REFUSED)
    for second in range(int(FORGET_S) + 3):
        written.now = float(second)
        answered(written, read(), WELL)
    assert written.events() == ["consul-silent", "consul-answers"]


def test_the_end_of_an_item_does_not_log_the_end_of_its_trouble() -> None:
    """The stop of an item while Consul is silent does not mean that Consul answers."""
    written = Written(level="info")
    answered(written, renewal(), REFUSED)
    answered(written, renewal("other"), REFUSED)
    written.on_step(Tick(), (Finished("app", clean=True),))
    answered(written, renewal("other"), SessionAlive())
    assert written.events() == ["consul-silent", "consul-answers"]
    written.now = REPEAT_S
    answered(written, renewal(), REFUSED)
    written.on_step(Tick(), (Finished("app", clean=True),))
    answered(written, read("other"), WELL)
    assert written.events() == ["consul-silent", "consul-answers", "consul-silent"]


# --- an item that is removed while it fails -----------------------------------------------------------


def removed_while_it_fails(*others: str) -> Written:
    """Let Consul be silent from 0 s on, first for all and at 2 s for "app" alone, which is removed at 3 s."""
    written = Written(level="info")
    for item in ("app", *others):
        answered(written, renewal(item), REFUSED)
    for item in others:
        written.now = 1.0
        answered(written, renewal(item), SessionAlive())
    written.now = 2.0
    answered(written, renewal(), REFUSED)
    written.now = 3.0
    written.on_step(Tick(), (Finished("app", clean=True),))
    return written


def read_sent_at(at: float, item: str = "other") -> ReadKey:
    return ReadKey(item, at, 1.0, "key")


def test_the_next_answer_to_an_item_that_stays_ends_the_trouble_of_a_removed_one() -> None:
    """The answer of 1 s is older than the last failure, and nothing shows that Consul answers at 3 s."""
    written = removed_while_it_fails("other")
    assert written.events() == ["consul-silent"]
    for at in (4.0, 5.0):
        written.now = at + 0.5
        answered(written, read_sent_at(at), WELL)
    assert written.events() == ["consul-silent", "consul-answers"]
    end = written.lines()[1]
    assert (end["names"], end["duration_s"], end["failures"]) == (["app", "other"], 4.0, 3)


def test_an_answer_to_a_request_from_before_the_last_failure_ends_no_trouble() -> None:
    written = removed_while_it_fails("other")
    answered(written, read_sent_at(1.5), WELL)
    assert written.events() == ["consul-silent"]
    answered(written, read_sent_at(2.5), WELL)
    assert written.events() == ["consul-silent", "consul-answers"]


def test_an_item_that_is_removed_and_added_again_goes_on_with_its_trouble() -> None:
    written = removed_while_it_fails()
    answered(written, renewal(), REFUSED)
    written.now = 4.5
    answered(written, read_sent_at(4.0, "app"), WELL)
    assert written.events() == ["consul-silent"]  # the renewal has failed, and no renewal has succeeded
    answered(written, replace(renewal(), at=4.0), SessionAlive())
    assert written.events() == ["consul-silent", "consul-answers"]
    assert written.lines()[1]["duration_s"] == 4.0


def test_after_a_removal_a_trouble_without_answers_is_forgotten_in_time() -> None:
    """A failure that begins hours later has no part in the former one."""
    written = removed_while_it_fails("other")
    written.now = 2.0 + FORGET_S + 1
    written.on_step(Tick(), ())
    answered(written, read_sent_at(2.0 + FORGET_S), WELL)
    answered(written, read_sent_at(2.0 + FORGET_S), REFUSED)
    begin, next_begin = written.lines()
    assert next_begin["event"] == "consul-silent" and "lasts_s" not in next_begin


def test_a_stop_never_logs_that_consul_answers() -> None:
    """Each item ends while Consul is silent, also an item that Consul had answered once."""
    written = removed_while_it_fails("other", "third")
    for item in ("third", "other"):
        written.on_step(Tick(), (Finished(item, clean=True),))
    for second in range(4, int(FORGET_S) + 5):
        written.now = float(second)
        written.on_step(Tick(), ())
    assert written.events() == ["consul-silent"]


# --- which answer ends a trouble ----------------------------------------------------------------------


def test_silence_ends_when_another_trouble_of_the_same_exchange_begins() -> None:
    """A proxy may answer 403 once its agent is back: the silence is over, and the token is refused."""
    written = Written(level="info")
    answered(written, renewal(), REFUSED)
    answered(written, renewal(), DENIED)
    assert written.events() == ["consul-silent", "consul-answers", "consul-denied"]


def test_a_read_that_is_answered_ends_the_trouble_of_a_watch() -> None:
    """A watch that is accepted again has no answer for half a minute."""
    written = Written(level="info")
    answered(written, WatchKey("app", 0.0, 1.0, "key", 1, 30.0, True), DENIED)
    answered(written, read(), WELL)
    assert written.events() == ["consul-denied", "consul-answers"]


def test_at_debug_every_failure_has_its_line() -> None:
    written = Written(level="debug")
    for _ in range(20):
        answered(written, read(), REFUSED)
    assert written.events().count("exchange-failed") == 20


# --- real contenders ------------------------------------------------------------------------------------


class Alone:
    """A node with real driver and contenders, and a peer that answers its requests."""

    def __init__(self, items: int, peer: Callable[[float, Request], Outcome], written: Written) -> None:
        self._schedule = Schedule()
        self._peer = peer
        self._written = written
        self._wakes = 0
        settings = [replace(contender(), name=name, key=name) for name in ITEMS[:items]]
        made = [new_contender(each, spread=at / items, instance="i") for at, each in enumerate(settings)]
        self.exchanges = 0
        self.driver = Driver(Contenders(made), self, {StartHook: self.start_hook})

    def run(self, until_s: float) -> None:
        self.driver.dispatch(Tick())
        self._schedule.run(until_s)

    def now(self) -> float:
        return self._schedule.now

    def request(self, request: Request) -> None:
        self.exchanges += 1
        outcome = self._peer(self.now(), request)
        silent = outcome is TIMED_OUT
        within_s = request.timeout_s if silent else 0.001
        if isinstance(request, WatchKey) and request.index > 0 and isinstance(outcome, KeyView):
            within_s = request.wait_s
        self._schedule.after(within_s, self.driver.dispatch, Answered(request, outcome))

    def start_hook(self, start: StartHook) -> None:
        self._schedule.after(0.01, self.driver.dispatch, HookEnded(start, ok=True))

    def write_record(self, write: WriteRecord) -> str:
        return ""

    def wake(self, at: float) -> None:
        self._wakes += 1
        self._schedule.at(at, self._tick, self._wakes)

    def _tick(self, wake: int) -> None:
        if wake == self._wakes:
            self.driver.dispatch(Tick())

    def observe(self, event: Event, actions: list[Action]) -> None:
        self._written.now = self.now()
        self._written.on_step(event, actions)


class Peer:
    """Consul as contenders without rivals see it.

    troubled: whether it answers with troubles instead, at this time.
    """

    def __init__(self) -> None:
        self.held: set[str] = set()
        self.troubled: Callable[[float], bool] = lambda now: False
        self._troubles = itertools.cycle((REFUSED, TIMED_OUT, GARBLED, DENIED))

    def answer(self, now: float, request: Request) -> Outcome:
        return next(self._troubles) if self.troubled(now) else self._well(request)

    def _well(self, request: Request) -> Outcome:
        item = request.item
        match request:
            case CreateSession():
                return Created(item)
            case Acquire():
                self.held.add(item)
                return Won(3, 7, 2)
            case RenewSession():
                return SessionAlive()
            case WatchKey() | ReadKey():
                return KeyView(7, item, b"me", 3, 7, 2) if item in self.held else KeyView(5)
        self.held.discard(item)
        return Done()


@pytest.mark.long
def test_an_hour_of_outage_logs_the_transitions_of_holders_and_a_few_lines() -> None:
    """Every transition of an item is logged, and the silence of the agent once."""
    items, begins_s, ends_s = 2, 60, 60 + HOUR_S
    written, peer = Written(level="info"), Peer()
    peer.troubled = lambda now: begins_s <= now < ends_s
    node = Alone(items, peer.answer, written)
    node.run(ends_s + 120)
    lines = written.lines()
    assert undocumented(lines) == [] and node.exchanges > items * HOUR_S / 4
    losing = [line for line in lines if line.get("role") == "losing"]
    assert [line["reason"] for line in losing] == ["lease-expired"] * items
    logged = [line for line in lines if line["event"].startswith("consul-")]
    assert 4 <= len(logged) <= LINES_MAX
    of_items = [line for line in lines if not line["event"].startswith("consul-")]
    assert len(of_items) <= 20 * items, Counter(line["event"] for line in of_items)
    assert logged[-1]["event"] == "consul-answers"


# --- output of hooks -----------------------------------------------------------------------------------


def test_the_output_of_all_hooks_together_is_bounded_as_journald_needs() -> None:
    """Of ten hooks with 1,000 lines a second the log counts the dropped lines, and drops none of its own."""
    written = Written(level="info")
    for second in range(30):
        written.now = float(second)
        for number in range(10_000):
            written.log.output(HookLine("app", f"h{number % 10}", "t", "stdout", "text"))
        written.log.line("info", "role", item="app", role="holding")
    events = Counter(written.events())
    assert events["hook-output"] == 3 * OUTPUT_LINES_MAX and events["role"] == 30
    written.now = 60.0
    written.on_step(Tick(), ())
    dropped = sum(line["count"] for line in written.lines() if line["event"] == "hook-output-dropped")
    assert dropped == 300_000 - 3 * OUTPUT_LINES_MAX
