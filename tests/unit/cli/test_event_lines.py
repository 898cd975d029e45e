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
            {"event": "command-received", "item": "a", "verb": "pause", **ROOT, "note": "disk"},
            "received pause from root: disk",
        ),
        (
            {"event": "reloaded", "process": "log.level: info -> debug", "changed": "a, b", "what": "both"},
            "Read the configuration again; the daemon: log.level: info -> debug; changed: a, b",
        ),
        ({"event": "watchdog", "device": "/dev/w", "state": "armed"}, "Watchdog /dev/w armed"),
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
