"""Lines for journald: its protocol, a sentence for each event, and a journald that is slow, gone or new.

A booted machine shows the real journald: tests/system/machine/test_start.py.
"""

import asyncio
import os
import re
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from supervisor.adapters.filesystem.writing import WAITING_BYTES_MAX, NonBlockingWriter
from supervisor.adapters.hooks.output import HookLine
from supervisor.core.actions import Reason, Role, RoleChanged
from supervisor.core.events import Tick
from supervisor.reporting.telemetry.log.journald import VALUE_BYTES_MAX, JournalWriter
from supervisor.reporting.telemetry.names import SENTENCES, sentence
from tests.support.log_lines import promises
from tests.support.log_written import Written
from tests.support.supervisor import PATIENCE_S

DERIVED = {
    "cleanly": "clean",
    "counted": "items",
    "items_named": "item",
    "later_attempt": "attempt",
}  # and the field it comes from

Fields = list[tuple[str, str]]


class Journal(Written):
    """A journald that the test plays, and a log for which standard error is the journal as well."""

    def __init__(self, path: Path, form: str = "auto", *, journal: bool = True) -> None:
        self.path = str(path)
        self.receiver: socket.socket | None = None
        super().__init__("debug", form, journal=journal, journal_socket=self.path)

    def starts(self, buffer_bytes: int = 1 << 20) -> None:
        """Listen on the path, with a new socket."""
        self.receiver = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.receiver.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, buffer_bytes)
        self.receiver.bind(self.path)
        self.receiver.setblocking(False)

    def stops(self) -> None:
        """Leave the path."""
        if self.receiver is not None:
            self.receiver.close()
            self.receiver = None
            os.unlink(self.path)

    def close(self) -> None:
        self.log.finish()
        self.stops()

    def received(self) -> list[Fields]:
        """Return the lines that have arrived since the last call, decoded as journald decodes them."""
        assert self.receiver is not None
        lines = []
        while True:
            try:
                lines.append(decoded(self.receiver.recv(1 << 20)))
            except BlockingIOError:
                return lines

    def line(self) -> dict[str, str]:
        """Return the one line that has arrived."""
        (line,) = self.received()
        assert len(dict(line)) == len(line), "a field occurs twice"
        return dict(line)


def decoded(data: bytes) -> Fields:
    """Read a datagram by the rules of the protocol."""
    fields = []
    while data:
        head, _, data = data.partition(b"\n")
        name, equals, value = head.partition(b"=")
        if not equals:
            size = int.from_bytes(data[:8], "little")
            value, end, data = data[8 : 8 + size], data[8 + size : 9 + size], data[9 + size :]
            assert end == b"\n" and len(value) == size
        assert re.fullmatch(rb"[A-Z][A-Z0-9_]{0,63}", name), name
        fields.append((name.decode(), value.decode()))
    return fields


@pytest.fixture
def journal(tmp_path: Path) -> Iterator[Journal]:
    played = Journal(tmp_path / "socket")
    played.starts()
    yield played
    played.close()


# --- lines -----------------------------------------------------------------------------------------


def test_a_line_has_a_sentence_and_a_field_for_each_value(journal: Journal) -> None:
    journal.on_step(Tick(), [RoleChanged("app", Role.LOSING, Reason.LEASE_EXPIRED, "s", 7, "s-lose")])
    assert journal.line() == {
        "MESSAGE": "app: losing (lease-expired)",
        "PRIORITY": "4",
        "SYSLOG_IDENTIFIER": "consul-supervisor",
        "SYSLOG_FACILITY": "3",
        "CONSUL_SUPERVISOR_EVENT": "role",
        "CONSUL_SUPERVISOR_ITEM": "app",
        "CONSUL_SUPERVISOR_ROLE": "losing",
        "CONSUL_SUPERVISOR_REASON": "lease-expired",
        "CONSUL_SUPERVISOR_TRANSITION": "s-lose",
        "CONSUL_SUPERVISOR_SESSION": "s",
        "CONSUL_SUPERVISOR_TOKEN": "7",
    }
    assert journal.text == ""


def test_a_value_with_newlines_arrives_whole_and_adds_no_field(journal: Journal) -> None:
    trace = "first\nPRIORITY=0\n\nlast é"
    journal.log.line("error", "bug", what="it broke", trace=trace)
    line = journal.line()
    assert (line["CONSUL_SUPERVISOR_TRACE"], line["PRIORITY"]) == (trace, "3")
    assert line["MESSAGE"] == f"A bug of the supervisor: it broke\n{trace}"


def test_a_list_is_a_field_for_each_value(journal: Journal) -> None:
    journal.log.line(
        "warning", "consul-silent", items=7, names=["a", "b"], kinds=["read key"], why="no answer"
    )
    (line,) = journal.received()
    assert [value for name, value in line if name == "CONSUL_SUPERVISOR_NAMES"] == ["a", "b"]
    assert dict(line)["MESSAGE"] == "a, b, …: Consul does not answer (read key): no answer"


def test_the_output_of_a_hook_can_be_filtered_by_item_and_hook(journal: Journal) -> None:
    for text in ("stopped <3>", ""):
        journal.log.output(HookLine("app", "on_lose[0]", "t-1", "stderr", text))
    lines = [dict(line) for line in journal.received()]
    assert [line["MESSAGE"] for line in lines] == [
        f"app: on_lose[0] wrote: {text}" for text in ("stopped <3>", "")
    ]
    assert {line["CONSUL_SUPERVISOR_HOOK"] for line in lines} == {"on_lose[0]"}
    assert [line["CONSUL_SUPERVISOR_TEXT"] for line in lines] == ["stopped <3>", ""]


def test_a_message_acts_on_no_terminal_and_a_field_is_as_it_was(journal: Journal) -> None:
    journal.log.line("warning", "notice", item="app", why="\x1b[31mred\u202e \udcff")
    line = journal.line()
    assert line["MESSAGE"] == "app: \\x1b[31mred\\u202e ?"
    assert line["CONSUL_SUPERVISOR_WHY"] == "\x1b[31mred\u202e \\udcff"


def test_a_long_value_is_cut_so_that_the_line_is_sent(journal: Journal) -> None:
    journal.log.line("info", "reloaded", **dict.fromkeys(("unchanged", "changed", "added"), "x" * 200_000))
    line = journal.line()
    assert {
        len(value) for name, value in line.items() if name.startswith("CONSUL") and "EVENT" not in name
    } == {VALUE_BYTES_MAX}
    assert len(line["MESSAGE"]) == VALUE_BYTES_MAX


# --- sentences -------------------------------------------------------------------------------------


def test_each_event_has_a_sentence_of_its_documented_fields() -> None:
    for event, template in SENTENCES.items():
        named = {DERIVED.get(field, field) for field in re.findall(r"\{(\w+)\}", template)}
        assert named <= promises()[event].fields, event


@pytest.mark.parametrize("event", SENTENCES)
def test_a_sentence_with_all_of_its_fields_has_no_gap(event: str) -> None:
    fields: dict[str, Any] = {field: f"<{field}>" for field in promises()[event].fields}
    known: dict[str, Any] = {"attempt": 2, "names": ["a"], "items": 2, "clean": True}
    fields |= {field: known[field] for field in known.keys() & fields.keys()}
    said = sentence(event, fields)
    assert not re.search(r"[][{}|]|(^|[ :])-($|[ :,])", said), said


@pytest.mark.parametrize(
    ("event", "fields", "said"),
    [
        ("started", {"items": 3, "pid": 7}, "Started: takes part in 3 elections and semaphores"),
        (
            "started",
            {"items": 1, "version": "2.0"},
            "Started version 2.0: takes part in 1 election or semaphore",
        ),
        ("copies-recovered", {"item": "a"}, "a: records are on disk again"),
        ("stopped", {"clean": True}, "Stopped in order"),
        ("stopped", {"clean": False}, "Stopped and left something over"),
        ("role", {"item": "app", "role": "waiting", "former_role": "losing"}, "app: waiting, was losing"),
        ("role", {"item": "app", "role": "acquiring", "former_role": "acquiring"}, "app: acquiring"),
        ("command", {"item": "app", "verb": "pause", "uid": 0}, "app: pause is done"),
        ("command", {"verb": "pause", "uid": 0, "why": "so"}, "pause was refused: so"),
        ("command-received", {"verb": "reload", "uid": 5}, "received reload from uid 5"),
        ("reloaded", {"unchanged": "app"}, "Read the configuration again"),
        ("hook-started", {"item": "app", "hook": "up", "attempt": 1}, "app: up started"),
        (
            "hook-failed",
            {"item": "app", "hook": "up", "attempt": 2, "duration_s": 0.4, "detail": "exit 1"},
            "app: up failed after 0.4 s, attempt 2: exit 1",
        ),
        ("events-failed", {"why": "no space"}, "events are kept in memory only: no space"),
        ("consul-answers", {"item": "app", "duration_s": 2.5}, "app: Consul answers again, after 2.5 s"),
    ],
)
def test_a_sentence_leaves_out_what_the_line_lacks(event: str, fields: dict[str, Any], said: str) -> None:
    assert sentence(event, fields) == said


# --- the choice of the format ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("form", "journal", "there"),
    [("auto", True, True), ("auto", False, False), ("journal", False, True), ("json", True, False)],
)
def test_auto_uses_the_journal_where_standard_error_is_the_journal(
    form: str, journal: bool, there: bool, tmp_path: Path
) -> None:
    played = Journal(tmp_path / "socket", form, journal=journal)
    played.starts()
    played.log.line("info", "started", items=1)
    assert (len(played.received()) == 1, played.text == "") == (there, there)
    played.close()


def test_a_reload_may_change_to_json_and_back(journal: Journal) -> None:
    journal.log.adjust("info", "json")
    journal.log.line("info", "started", items=1)
    assert journal.text.startswith('<6>{"time"') and journal.received() == []
    journal.log.adjust("info", "auto")
    journal.log.line("info", "started", items=1)
    assert journal.line()["CONSUL_SUPERVISOR_ITEMS"] == "1"


# --- a journald that is slow, gone or new ----------------------------------------------------------


def test_without_journald_lines_go_to_standard_error_as_text(tmp_path: Path) -> None:
    alone = Journal(tmp_path / "socket")
    alone.log.line("warning", "notice", item="app", why="one\ntwo")
    assert alone.text == "<4>app: one\n<4>two\n"
    alone.close()
    beside = Journal(tmp_path / "socket", "journal", journal=False)
    beside.log.line("warning", "notice", item="app", why="so")
    assert beside.text == "app: so\n"
    beside.close()


def test_a_new_journald_on_the_path_gets_the_next_lines(journal: Journal) -> None:
    journal.log.line("info", "notice-over", item="a")
    assert journal.line()["CONSUL_SUPERVISOR_ITEM"] == "a"
    journal.stops()
    journal.log.line("info", "notice-over", item="b")
    assert journal.text == "<6>b: the notice is over\n"
    journal.starts()
    journal.log.line("info", "notice-over", item="c")
    assert journal.line()["CONSUL_SUPERVISOR_ITEM"] == "c"


def items(lines: list[Fields]) -> list[int]:
    """Return the items of these lines, which are numbers in the tests below."""
    return [int(dict(line)["CONSUL_SUPERVISOR_ITEM"]) for line in lines]


def test_while_journald_stands_still_lines_wait_in_order_and_beyond_a_limit_they_are_counted(
    journal: Journal,
) -> None:
    """The log takes twice as much as may wait, and never waits itself."""
    outlet = NonBlockingWriter(2)
    writer = JournalWriter(outlet, path=journal.path, prefixed=True)
    wanted = 2 * WAITING_BYTES_MAX // 1000
    for number in range(wanted):
        writer.write("info", "hook-output", {"item": number, "text": "x" * 1000})
    arrived: list[int] = []
    while lines := journal.received():
        arrived += items(lines)
        writer.flush()
    assert arrived == list(range(len(arrived)))
    assert 0 < outlet.dropped == wanted - len(arrived) < wanted
    writer.write("info", "hook-output", {"item": 7, "text": ""})
    assert items(journal.received()) == [7]
    writer.finish()


async def test_a_loop_sends_later_what_waits(journal: Journal) -> None:
    """Two hundred of these lines need more than the send buffer has."""
    wanted = list(range(200))
    writer = JournalWriter(NonBlockingWriter(2), path=journal.path, prefixed=True)
    for number in wanted:
        writer.write("info", "hook-output", {"item": number, "text": "x" * 1000})
    arrived = items(journal.received())
    assert len(arrived) < len(wanted)
    ends_at = asyncio.get_running_loop().time() + PATIENCE_S
    while len(arrived) < len(wanted) and asyncio.get_running_loop().time() < ends_at:
        await asyncio.sleep(0.01)
        arrived += items(journal.received())
    writer.finish()
    assert arrived == wanted


def test_the_last_lines_go_to_standard_error_if_journald_stands_still(journal: Journal) -> None:
    wanted = list(range(200))
    for number in wanted:
        journal.log.line("info", "notice", item=number, why="x" * 1000)
    journal.log.finish()
    arrived = items(journal.received())
    assert 0 < len(arrived) < len(wanted)
    rest = "".join(f"<6>{number}: {'x' * 1000}\n" for number in wanted[len(arrived) :])
    assert (arrived, journal.text) == (wanted[: len(arrived)], rest)
