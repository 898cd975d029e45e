"""Repeated failures are logged once: an hour of outage with 100 items is a handful of lines.

None of the lines that an operator must read is lost with the repeated ones.
"""

import random
from collections import Counter
from collections.abc import Callable
from dataclasses import replace

import pytest

from supervisor.adapters.hooks.output import HookLine
from supervisor.core.actions import Finished
from supervisor.core.events import Answered, Tick
from supervisor.core.outcomes import Denied, KeyView, Outcome, SessionAlive, Unknown
from supervisor.core.requests import ReadKey, RenewSession, Request, WatchKey
from supervisor.core.settings import SessionSettings
from supervisor.reporting.telemetry.log import OUTPUT_LINES_MAX
from supervisor.reporting.telemetry.log.recurring import FORGET_S, NAMES_MAX, REMIND_S, REPEAT_S
from tests.support.log_lines import undocumented
from tests.support.log_written import Written

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


@pytest.mark.parametrize("outcome", [REFUSED, DENIED], ids=lambda outcome: outcome.why[:12])
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
