"""Events as lines for a person."""

import pytest

from supervisor.commands.cli.display.event_lines import Event, lines, text_of

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
            "losing (step-down), was holding: why",
        ),
        (
            {"event": "role", "role": "acquiring", "reason": "adopted", "token": 7},
            "acquiring (adopted), token 7",
        ),
        (
            {"event": "hook-succeeded", "hook": "on_lose[0]", "attempt": 1, "duration_s": 0.4},
            "on_lose[0] succeeded after 0.4 s",
        ),
        (
            {
                "event": "hook-failed",
                "hook": "on_lose[0]",
                "attempt": 2,
                "duration_s": 5.0,
                "detail": "exit 1",
            },
            "on_lose[0] failed after 5.0 s, attempt 2: exit 1",
        ),
        ({"event": "run-ended", "duration_s": 61.0, "detail": "exit 0"}, "run ended after 61.0 s: exit 0"),
        (
            {"event": "command-received", "item": "a", "verb": "pause", **ROOT, "note": "disk"},
            "received pause from root: disk",
        ),
        ({"event": "command-received", "verb": "pause", "uid": 1234}, "received pause from uid 1234"),
        ({"event": "command-received", "verb": "reload", **ROOT}, "received reload from root"),
        (
            {"event": "command", "item": "a", "verb": "recover", **ROOT, "why": "no"},
            "recover was refused: no",
        ),
        (
            {"event": "started", "pid": 12, "items": 2, "version": "1.0"},
            "Started version 1.0: takes part in 2 elections and semaphores",
        ),
        (
            {"event": "reloaded", "process": "log.level: info -> debug", "changed": "a, b", "what": "both"},
            "Read the configuration again; the daemon: log.level: info -> debug; changed: a, b",
        ),
        ({"event": "reloaded", "unchanged": "c"}, "Read the configuration again"),
        ({"event": "reload-refused", "why": "no"}, "Refused the configuration: no"),
        ({"event": "watchdog", "device": "/dev/w", "state": "armed"}, "Watchdog /dev/w armed"),
        ({"event": "stopped", "clean": True}, "Stopped in order"),
        ({"event": "stopped", "clean": False}, "Stopped and left something over"),
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
        f"{TIME}  namenode  waiting",
        f"{TIME}  app       waiting",
        f"{TIME}  -         Stopped and left something over",
    ]
    assert lines([]) == []


def test_nothing_that_a_terminal_obeys_gets_through() -> None:
    bad = "\x1b]0;owned\x07\r\n\u202e"
    events = [{"time": bad, "item": bad, "event": name, "role": bad, "detail": bad, "why": bad, "verb": bad}
              for name in ("role", "hook-failed", "command", bad)]  # fmt: skip
    assert all(line.isprintable() for line in lines(events))
