"""Events as lines for a person."""

import pytest

from supervisor.cli.display.event_lines import Event, lines, text_of

TIME = "2026-11-22T15:01:07.612Z"
ROOT = {"uid": 0, "user": "root"}


@pytest.mark.parametrize(
    ("event", "text"),
    [
        (
            {
                "event": "role",
                "role": "losing",
                "former_role": "holding",
                "reason": "step-down",
                "note": "why",
            },
            "holding -> losing (step-down: why)",
        ),
        (
            {"event": "role", "role": "acquiring", "reason": "adopted", "token": 7},
            "-> acquiring (adopted), token 7",
        ),
        (
            {"event": "hook-succeeded", "hook": "on_lose[0]", "attempt": 1, "duration_s": 0.4},
            "on_lose[0] ok 0.400s",
        ),
        (
            {
                "event": "hook-failed",
                "hook": "on_lose[0]",
                "attempt": 2,
                "duration_s": 5.0,
                "detail": "exit 1",
            },
            "on_lose[0] attempt 2 FAILED 5.000s (exit 1)",
        ),
        ({"event": "run-ended", "duration_s": 61.0, "detail": "exit 0"}, "run ended 61.000s (exit 0)"),
        (
            {"event": "command-received", "item": "a", "verb": "pause", **ROOT, "note": "disk"},
            "pause by root (disk)",
        ),
        ({"event": "command-received", "verb": "pause", "uid": 1234}, "pause --all by user id 1234"),
        ({"event": "command-received", "verb": "reload", **ROOT}, "reload by root"),
        (
            {"event": "command", "item": "a", "verb": "recover", **ROOT, "why": "no"},
            "recover by root REFUSED (no)",
        ),
        ({"event": "started", "pid": 12}, "supervisor started, pid 12"),
        ({"event": "started", "pid": 12, "version": "1.0"}, "supervisor started, version 1.0, pid 12"),
        (
            {"event": "reloaded", "what": "log.level: info -> debug; changed: a, b", "unchanged": "c"},
            "configuration read again: log.level: info -> debug; changed: a, b",
        ),
        ({"event": "reloaded", "unchanged": "c"}, "configuration read again: nothing has changed"),
        ({"event": "reload-refused", "why": "no"}, "configuration REFUSED (no)"),
        ({"event": "watchdog", "device": "/dev/w", "state": "armed"}, "watchdog /dev/w armed"),
        ({"event": "stopped", "clean": True}, "supervisor stopped"),
        ({"event": "stopped", "clean": False}, "supervisor stopped, not clean"),
        ({"event": "later"}, "later"),
    ],
)
def test_what_happened_is_said_in_one_line(event: Event, text: str) -> None:
    assert text_of(event) == text


def test_times_and_items_stand_in_columns() -> None:
    role = {"time": TIME, "event": "role", "role": "waiting"}
    assert lines(
        [{**role, "item": "namenode"}, {**role, "item": "app"}, {"time": TIME, "event": "stopped"}]
    ) == [
        f"{TIME}  namenode  -> waiting",
        f"{TIME}  app       -> waiting",
        f"{TIME}  -         supervisor stopped, not clean",
    ]
    assert lines([]) == []


def test_nothing_that_a_terminal_obeys_gets_through() -> None:
    bad = "\x1b]0;owned\x07\r\n\u202e"
    events = [{"time": bad, "item": bad, "event": name, "role": bad, "detail": bad, "why": bad, "verb": bad}
              for name in ("role", "hook-failed", "command", bad)]  # fmt: skip
    assert all(line.isprintable() for line in lines(events))
