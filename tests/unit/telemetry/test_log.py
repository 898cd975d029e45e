"""Lines of the log: each is whole, has a documented name and reaches its reader.

Repeated lines: test_log_bounds.py. Secrets: elections/test_secrets.py.
"""

import ast
import json
import os
import re
import socket
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import get_args

import pytest

from supervisor.adapters.filesystem.writing import WAITING_BYTES_MAX, NonBlockingWriter
from supervisor.core.actions import Finished, HookContext, NoticeChanged, Reason, Role, RoleChanged, StartHook
from supervisor.core.events import HookEnded, Tick
from supervisor.core.settings import Command, Hook
from supervisor.reporting.telemetry.log import FOLLOW_ROLE, KEPT, Level, Log
from supervisor.reporting.telemetry.log.recurring import KINDS
from supervisor.reporting.telemetry.names import SENTENCES
from tests.support.consul import Agent
from tests.support.log_lines import PAGE
from tests.support.log_written import Written
from tests.support.pages import ROOT, first_codes
from tests.support.supervisor import COMMAND, ENVIRON, PATIENCE_S, Supervisor

SOURCES = [*(ROOT / "supervisor").rglob("*.py")]
WRITES = ("line", "_write", "Fact")  # each with the level before the name

# --- form ----------------------------------------------------------------------------------------


def test_a_line_is_one_json_object_even_with_hostile_text() -> None:
    written = Written()
    hostile = 'a "quoted"\nsecond line \x1b[31m \u2028 {"event": "bug"}'
    written.log.line("error", "hook-output", text=hostile, absent=None, empty="", zero=0)
    assert written.text.count("\n") == 1
    (line,) = written.lines()
    assert (line["text"], line["level"], line["zero"]) == (hostile, "error", 0)
    assert "absent" not in line and "empty" not in line
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d+Z", str(line["time"]))


def test_the_console_format_is_text_without_colours_outside_a_terminal() -> None:
    written = Written(form="console")
    written.log.line("info", "started", items=2)
    assert "started" in written.text and "items=2" in written.text and "\x1b" not in written.text


def test_the_auto_format_is_json_outside_a_terminal() -> None:
    written = Written(form="auto")
    written.log.line("info", "started")
    assert written.events() == ["started"]


def test_lines_below_the_level_are_not_written() -> None:
    written = Written(level="warning")
    for level in get_args(Level):
        written.log.line(level, "notice", why=level)
    assert [line["why"] for line in written.lines()] == ["warning", "error"]


def test_a_reload_may_change_level_and_format_and_keeps_journal_priorities() -> None:
    written = Written(level="info", form="console", journal=True)
    written.log.adjust("warning", "json")
    written.log.line("info", "started")
    written.log.line("warning", "notice", why="so")
    assert re.fullmatch(r'<4>\{.*"why": "so"\}\n', written.text)


def test_the_console_format_begins_with_item_and_hook() -> None:
    written = Written(form="console")
    start = StartHook(LOSE, 1, CONTEXT)
    written.on_step(Tick(), [start])
    said = " ".join(written.text.split())
    assert "hook-started item=app hook=on_lose[0] event_kind=lose reason=step-down" in said


# --- roles ---------------------------------------------------------------------------------------

LOSE = Hook("on_lose[0]", Command(("true",)), 5.0)
CONTEXT = HookContext("lose", "app", "k", Reason.STEP_DOWN, "s-lose", "s", fencing_token=7)


@pytest.mark.parametrize("reason", list(Reason), ids=str)
def test_a_loss_without_a_request_is_a_warning(reason: Reason) -> None:
    written = Written()
    written.on_step(Tick(), [RoleChanged("app", Role.LOSING, reason)])
    requested = reason in ("step-down", "shutdown", "config-changed")
    (line,) = written.lines()
    assert (line["level"], line["reason"]) == ("info" if requested else "warning", reason)


def test_the_line_of_a_hook_follows_that_of_its_role() -> None:
    written = Written()
    written.on_step(Tick(), [StartHook(LOSE, 1, CONTEXT), RoleChanged("app", Role.LOSING, "step-down")])
    assert written.events() == ["role", "hook-started"]


def test_the_line_of_a_stuck_item_has_the_reason_and_the_remedy() -> None:
    written = Written()
    stuck = RoleChanged("app", Role.STUCK, "step-down")
    written.on_step(HookEnded(StartHook(LOSE, 1, CONTEXT), ok=False, detail="exit 1"), [stuck])
    line = written.lines()[-1]
    remedy = "see that nothing of it still acts, then run: consul-supervisor recover app"
    assert (line["level"], line["why"]) == ("error", "on_lose[0] failed: exit 1")
    assert line["remedy"] == remedy
    written.on_step(Tick(), [Finished("app", clean=False)])
    assert written.lines()[-1]["remedy"] == remedy.replace(", then", ", start the supervisor again, then")


def test_what_a_hook_leaves_running_is_a_warning_and_for_a_check_a_single_one() -> None:
    written = Written("warning")
    detail = "exit 0, killed what it left running: app"
    checks = replace(CONTEXT, event="check")
    for context in (CONTEXT, checks, checks, replace(checks, name="other")):
        written.on_step(HookEnded(StartHook(LOSE, 1, context), True, detail, left="app"), [])
        written.on_step(HookEnded(StartHook(LOSE, 1, context), ok=True, detail="exit 0"), [])
    told = [(line["event_kind"], line["item"], line["detail"]) for line in written.lines()]
    assert told == [
        (kind, item, detail) for kind, item in (("lose", "app"), ("check", "app"), ("check", "other"))
    ]


def test_a_notice_that_comes_and_goes_within_seconds_is_logged_once() -> None:
    written = Written()
    comings = [(0.0, "odd"), (0.2, ""), (0.5, "odd"), (0.9, ""), (1.1, "odd"), (9.0, "odder"), (10.0, "")]
    for now, notice in (*comings, (11.9, None)):
        written.now = now
        written.on_step(Tick(), [] if notice is None else [NoticeChanged("app", notice)])
    told = [(line["event"], line.get("why")) for line in written.lines()]
    assert told == [("notice", "odd"), ("notice", "odder")]
    written.now = 12.9  # the end of notices is looked for once a second
    written.on_step(Tick(), [])
    assert written.events()[2:] == ["notice-over"]


# --- names ---------------------------------------------------------------------------------------


def test_the_log_page_has_every_event_name_once_and_no_other() -> None:
    assert sorted(first_codes(PAGE, "event")) == sorted(SENTENCES)
    assert {*KINDS} | {kind.over for kind in KINDS.values()} | {*KEPT, *FOLLOW_ROLE} <= {*SENTENCES}


def test_no_code_writes_a_line_with_another_name() -> None:
    trees = (ast.parse(source.read_text()) for source in SOURCES)
    calls = (node for tree in trees for node in ast.walk(tree) if isinstance(node, ast.Call))
    names = [each.value for call in calls for each in _name_of_line(call) if isinstance(each, ast.Constant)]
    assert len(names) > 40 and {*names} <= {*SENTENCES}


def _name_of_line(call: ast.Call) -> list[ast.expr]:
    """Return the argument that names the line, if this call writes one."""
    called = getattr(call.func, "attr", getattr(call.func, "id", ""))
    return call.args[:1] if called == "noted" else call.args[1:2] if called in WRITES else []


def test_every_event_name_is_in_use() -> None:
    text = "\n".join(source.read_text() for source in SOURCES if source.name != "names.py")
    assert [name for name in SENTENCES if f'"{name}"' not in text] == []


# --- the journal ---------------------------------------------------------------------------------


def test_in_the_journal_a_line_begins_with_the_priority_of_its_level() -> None:
    written = Written(journal=True)
    written.log.line("debug", "request")
    written.log.line("info", "started")
    written.log.line("warning", "notice", why="<3> is no priority here")
    written.log.line("error", "bug", trace="two\nlines")
    lines = [re.fullmatch(r"<([3-7])>(\{.*\})", line) for line in written.text.splitlines()]
    assert [match and match[1] for match in lines] == ["7", "6", "4", "3"]
    assert all(json.loads(match[2])["event"] for match in lines if match)


@pytest.mark.parametrize("which", ["this", "another"])
def test_only_the_stream_that_systemd_names_is_the_journal(which: str, tmp_path: Path) -> None:
    """journald gives a service a stream socket as standard error, and names it in JOURNAL_STREAM."""
    reader, writer = socket.socketpair()
    status = os.fstat(writer.fileno())
    named = {"this": f"{status.st_dev}:{status.st_ino}", "another": f"{status.st_dev}:{status.st_ino + 1}"}
    with reader, writer:
        config = tmp_path / "config.yaml"
        consul = "consul: {address: 'http://127.0.0.1:1'}"
        config.write_text(f"{consul}\nlog: {{format: json}}\nelections: {{app: {{contend: false}}}}\n")
        folders = dict.fromkeys(("STATE_DIRECTORY", "RUNTIME_DIRECTORY"), str(tmp_path))
        environ = {**ENVIRON, **folders, "JOURNAL_STREAM": named[which]}
        argv = [*COMMAND, "run", str(config)]
        process = subprocess.Popen(argv, stderr=writer.fileno(), env=environ, cwd=ROOT)
        try:
            said = b""
            reader.settimeout(PATIENCE_S)
            while b"consul-silent" not in said:
                said += reader.recv(1 << 16)
        finally:
            process.terminate()
            process.wait(PATIENCE_S)
    first = said.splitlines()[0].decode()
    assert first.startswith('<6>{"time"' if which == "this" else '{"time"'), first
    assert (b'<4>{"time"' in said) is (which == "this")


# --- a story ---------------------------------------------------------------------------------------


def test_a_tenure_is_found_by_its_session_and_a_transition_by_its_id(
    shared_agent: Agent, unique: str, tmp_path: Path
) -> None:
    """A hook is retried, the run child starts, the node stops."""
    election = {
        "key": f"{unique}/k",
        "on_acquire": [{"shell": "[ $CONSUL_SUPERVISOR_ATTEMPT = 2 ]", "retries": 1, "retry_delay": "100ms"}],
        "run": {"exec": ["sleep", "100"]},
        "on_lose": [{"shell": "echo bye; sleep 0.1"}],
    }
    config = {"consul": {"address": shared_agent.url}, "elections": {"app": election}}
    node = Supervisor(tmp_path / "node", config)
    try:
        node.start()
        holding = node.wait_line("role", role="holding")
        assert node.stop() == 0
    finally:
        node.close()
    node.assert_no_fault()
    session, token = holding["session"], holding["token"]
    assert token > 0 and holding["transition"] == f"{session}-acquire"
    acquiring = node.lines(transition=f"{session}-acquire")
    assert [line["event"] for line in acquiring] == [
        "role", "hook-started", "hook-failed", "hook-started", "hook-succeeded", "role",
    ]  # fmt: skip
    losing = node.lines(transition=f"{session}-lose")
    assert [line["event"] for line in losing] == ["role", "hook-started", "hook-output", "hook-succeeded"]
    for line in (*acquiring, *losing):
        assert line["event"] == "hook-output" or (line["session"], line["token"]) == (session, token), line
        assert line["item"] == "app"
    assert 0 < losing[-1]["duration_s"] < PATIENCE_S
    (run,) = node.lines("run-ended")
    assert run["duration_s"] >= 0 and run["transition"] == f"{session}-run"


# --- readers --------------------------------------------------------------------------------------


def test_the_log_does_not_wait_for_a_slow_reader() -> None:
    """Waiting lines are bounded, and dropped lines are counted and reported once there is room again."""
    reader, writer = os.pipe()
    log = Log("info", "json", lambda: 0.0, NonBlockingWriter(writer))
    text = "x" * 1000
    for _ in range(2 * WAITING_BYTES_MAX // len(text)):
        log.line("info", "hook-output", text=text)
    said = b""
    while not said.endswith(b"}\n") or b"log-lines-dropped" not in said[-2000:]:
        said += os.read(reader, 1 << 16)
        log.line("info", "stopped")
    events = [json.loads(line)["event"] for line in said.splitlines() if line.endswith(b"}")]
    assert "log-lines-dropped" in events
    os.close(writer)
    os.close(reader)


def test_a_log_that_cannot_be_written_raises_no_error() -> None:
    reader, writer = os.pipe()
    os.close(reader)
    log = Log("info", "json", lambda: 0.0, NonBlockingWriter(writer))
    log.line("info", "started")
    log.finish()
    os.close(writer)
    with open("/dev/full", "wb", buffering=0) as full:
        Log("info", "json", lambda: 0.0, NonBlockingWriter(full.fileno())).line("info", "started")
