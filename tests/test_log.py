"""Lines of the log: each is whole, and what repeats is bounded. (Secrets: elections/test_secrets.py.)"""

import json
import os
import re
from pathlib import Path

from supervisor.core.actions import ReadKey, RenewSession, Request
from supervisor.core.events import Alive, Answered, Denied, KeyView, Outcome, Unknown
from supervisor.log import REPEAT_S, Log
from supervisor.outlet import WAITING_BYTES_MAX, Outlet
from tests.support.supervisor import Supervisor, until

READ = ReadKey("app", 0.0, 1.0, "key")
RENEWAL = RenewSession("app", 0.0, 1.0, "session")


class Written:
    """A log in memory, with a clock of the test's own."""

    def __init__(self, level: str = "debug", form: str = "json") -> None:
        self.now = 0.0
        self._file = os.fdopen(os.memfd_create("log"), "rb")
        self.log = Log(level, form, lambda: self.now, Outlet(self._file.fileno()))

    def __del__(self) -> None:
        self._file.close()

    @property
    def text(self) -> str:
        return os.pread(self._file.fileno(), 1 << 20, 0).decode()

    def lines(self) -> list[dict[str, object]]:
        return [json.loads(line) for line in self.text.splitlines()]

    def events(self) -> list[object]:
        return [line["event"] for line in self.lines()]

    def answered(self, request: Request, outcome: Outcome) -> None:
        self.log.event(Answered(request, outcome))


# --- form ----------------------------------------------------------------------------------------


def test_a_line_is_one_json_object_whatever_is_in_it() -> None:
    written = Written()
    hostile = 'a "quoted"\nsecond line \x1b[31m \u2028 {"event": "bug"}'
    written.log.line("error", "hook-output", text=hostile, absent=None, empty="", zero=0)
    assert written.text.count("\n") == 1
    (line,) = written.lines()
    assert (line["text"], line["level"], line["zero"]) == (hostile, "error", 0)
    assert "absent" not in line and "empty" not in line
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d+Z", str(line["time"]))


def test_console_is_text_and_without_colours_where_there_is_no_terminal() -> None:
    written = Written(form="console")
    written.log.line("info", "started", elections=2)
    assert "started" in written.text and "elections=2" in written.text and "\x1b" not in written.text


def test_auto_is_json_where_there_is_no_terminal() -> None:
    written = Written(form="auto")
    written.log.line("info", "started")
    assert written.events() == ["started"]


def test_lines_below_the_level_are_not_written() -> None:
    written = Written(level="warning")
    for level in ("debug", "info", "warning", "error"):
        written.log.line(level, level)
    assert written.events() == ["warning", "error"]


# --- repetition ----------------------------------------------------------------------------------


def test_an_outage_is_said_once_a_minute_and_its_end_once() -> None:
    written = Written()
    for second in range(3 * int(REPEAT_S)):
        written.now = float(second)
        written.answered(READ, Unknown("connection refused"))
    written.answered(READ, KeyView(1))
    written.answered(READ, KeyView(2))
    assert written.events() == ["consul-silent"] * 3 + ["consul-answers"]
    assert [line.get("times_unsaid") for line in written.lines()[:3]] == [None, REPEAT_S - 1, REPEAT_S - 1]


def test_reasons_that_take_turns_are_not_said_each_time() -> None:
    """A half-open outage: refused, then timed out, then refused."""
    written = Written()
    for number in range(100):
        written.now = number / 10
        written.answered(READ, Unknown("refused" if number % 2 else "timed out"))
    assert len(written.lines()) <= 2


def test_kinds_of_exchange_and_elections_are_told_apart() -> None:
    written = Written()
    written.answered(READ, Unknown("refused"))
    written.answered(RENEWAL, Unknown("refused"))
    written.answered(ReadKey("other", 0.0, 1.0, "key"), Unknown("refused"))
    written.answered(RENEWAL, Alive())
    assert [(line["event"], line["item"], line["kind"]) for line in written.lines()] == [
        ("consul-silent", "app", "ReadKey"),
        ("consul-silent", "app", "RenewSession"),
        ("consul-silent", "other", "ReadKey"),
        ("consul-answers", "app", "RenewSession"),
    ]


def test_a_denied_token_is_an_error() -> None:
    written = Written()
    written.answered(RENEWAL, Denied("403 Permission denied"))
    (line,) = written.lines()
    assert (line["event"], line["level"]) == ("consul-denied", "error")


# --- a whole process -----------------------------------------------------------------------------


def test_a_consul_that_is_down_does_not_fill_the_log(tmp_path: Path) -> None:
    """A line for each election and kind of exchange, not for each exchange."""
    elections: dict[str, object] = {f"e{number}": {} for number in range(3)}
    config = {
        "consul": {"address": "http://127.0.0.1:1"},
        "log": {"format": "json", "level": "debug"},
        "elections": elections,
    }
    node = Supervisor(tmp_path / "node", config)
    node.start()
    try:
        until(lambda: len(node.lines("request")) >= 20, "three rounds of create and watch")
        assert node.stop() == 0
    finally:
        node.close()
    node.assert_no_fault()
    said = [(line["item"], line["kind"]) for line in node.lines("consul-silent")]
    assert sorted(said) == sorted(
        (name, kind) for name in elections for kind in ("CreateSession", "WatchKey")
    )


# --- who reads it ---------------------------------------------------------------------------------


def test_a_reader_that_does_not_read_is_not_waited_for() -> None:
    """Its lines wait, in bounds; what is dropped is counted, and said once there is room again."""
    reader, writer = os.pipe()
    log = Log("info", "json", lambda: 0.0, Outlet(writer))
    text = "x" * 1000
    for _ in range(2 * WAITING_BYTES_MAX // len(text)):
        log.line("info", "hook-output", text=text)
    said = b""
    while not said.endswith(b"}\n") or b"log-lines-dropped" not in said[-2000:]:
        said += os.read(reader, 1 << 16)
        log.line("info", "after")
    events = [json.loads(line)["event"] for line in said.splitlines() if line.endswith(b"}")]
    assert "log-lines-dropped" in events
    os.close(writer)
    os.close(reader)


def test_a_log_that_cannot_be_written_is_no_fault_of_what_it_tells() -> None:
    reader, writer = os.pipe()
    os.close(reader)
    log = Log("info", "json", lambda: 0.0, Outlet(writer))
    log.line("info", "to nobody")
    log.finish()
    os.close(writer)
    with open("/dev/full", "wb", buffering=0) as full:
        Log("info", "json", lambda: 0.0, Outlet(full.fileno())).line("info", "no space")
