"""Who led before, as the events of a node have it."""

from typing import Any

from supervisor.core import outcomes as o
from supervisor.core.events import Answered
from supervisor.core.requests import Acquire, ReadKey, WatchKey
from supervisor.reporting.telemetry.history import Replay
from supervisor.reporting.telemetry.leaders import Leaders

N1, N2 = b'{"Node": "n1"}', b'{"Node": "n2"}'
NOON = 1_800_000_000.0
AT = "2027-01-15T07:00:00.000Z"
CHANGED = {"event": "leader-changed", "time": AT, "item": "app", "key": "k", "to": "n1"}


def view(session: str | None, value: bytes = b"") -> Answered:
    request = WatchKey("app", 0.0, 1.0, "k", 0, 1.0, consistent=True)
    return Answered(request, o.KeyView(5, session, value, 3, 5, 1))


class Seen:
    """What one node sees of an election, minute by minute, and what it reports."""

    def __init__(self) -> None:
        self.minutes = 0
        self.told: list[dict[str, Any]] = []
        self.leaders = Leaders(lambda: NOON + 60 * self.minutes)

    def begin(self, earlier: Leaders | None = None) -> None:
        self.leaders.begin(earlier or Leaders(lambda: 0.0), self.told.append)

    def sees(self, session: str, value: bytes = b"") -> None:
        self.minutes += 1
        self.leaders.on_step(view(session, value))


def test_each_change_has_the_leader_before_also_when_nobody_led_between() -> None:
    seen = Seen()
    seen.begin()
    for session, value in (("s1", N1), ("s1", b"another value"), ("", b""), ("s2", b"perhaps a secret")):
        seen.sees(session, value)
    about = {"item": "app", "key": "k"}
    assert seen.told == [
        {**about, "to": "n1", "session": "s1"},
        {**about, "from": "n1", "since": "2027-01-15T08:01:00.000Z", "to": "s2", "session": "s2"},
    ]
    assert seen.leaders.gone == {"app": ("s1", "2027-01-15T08:03:00.000Z")}, "missed since nobody led"
    seen.sees("")
    led = seen.leaders.of("app", "k")
    assert led is not None and (led.name, led.shown) == ("s2", "perhaps a secret")
    assert seen.leaders.of("app", "another key of a changed file") is None
    seen.leaders.retain([])
    assert seen.leaders.of("app", "k") is None


def test_an_acquire_of_this_node_is_a_change() -> None:
    seen = Seen()
    seen.begin()
    seen.leaders.on_step(Answered(Acquire("app", 0.0, 1.0, "k", "s3", b"me"), o.Won(7, 3, 1)))
    assert [each["to"] for each in seen.told] == ["me"]


def test_what_changed_while_no_process_looked_is_reported_once_the_events_are_read() -> None:
    past, seen = Replay(), Seen()
    past.event({**CHANGED, "session": "s1"})
    seen.sees("s2", N2)
    assert seen.told == []
    seen.begin(past.history.leaders)
    seen.sees("s2", N2)
    assert [(each["from"], each["since"], each["to"]) for each in seen.told] == [("n1", AT, "n2")]


def test_a_process_that_has_seen_nobody_yet_knows_the_leader_of_the_events() -> None:
    past, seen = Replay(), Seen()
    past.event({"event": "leader-changed", "time": "t", "item": "app"})  # it lacks fields
    past.event({**CHANGED, "session": "s"})
    seen.begin(past.history.leaders)
    led = seen.leaders.of("app", "k")
    assert led is not None and (led.name, led.since) == ("n1", AT)
    seen.sees("s", N1)
    assert seen.told == []
    led = seen.leaders.of("app", "k")
    assert led is not None and led.since == AT, "it has led since then"


def test_what_flaps_is_told_once_a_second_and_in_the_end() -> None:
    seen = Seen()
    seen.begin()
    for number in range(100):
        seen.minutes = 1 + number // 50  # fifty at one time
        seen.leaders.on_step(view(f"s{number}"))
    assert [each["to"] for each in seen.told] == ["s0", "s50"]
    seen.minutes = 5
    seen.leaders.on_step(view("s99"))
    assert [each["to"] for each in seen.told] == ["s0", "s50", "s99"]


def test_a_contender_of_a_semaphore_is_no_leader() -> None:
    seen = Seen()
    seen.begin()
    read = ReadKey("app", 0.0, 1.0, "k/s", "k")
    seen.leaders.on_step(Answered(read, o.KeyView(5, "s", N1, 3, 5, 1)))
    assert seen.told == [] and seen.leaders.of("app", "k/s") is None
