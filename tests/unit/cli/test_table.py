"""The status as a table: it is read at a glance, fits its terminal, and holds no control characters."""

import re
from datetime import UTC, datetime
from typing import Any

import pytest

from docs import page as made_up
from supervisor import __version__
from supervisor.commands.cli.display.table import duration, lines
from supervisor.commands.cli.display.text import width

NOW = datetime(2026, 11, 21, 15, tzinfo=UTC)
AT = "2026-11-21T15:00:00.000Z"


def item(name: str, role: str = "waiting", since_s: float = 192, **fields: Any) -> dict[str, Any]:
    return made_up.item(NOW, name, role, since_s, **fields)


def hook(result: str, name: str = "on_acquire[0]", detail: str = "") -> dict[str, Any]:
    return {
        "hook": name,
        "event": "acquire",
        "result": result,
        "at": AT,
        "duration_s": 0.12,
        "detail": detail,
    }


def status(*items: dict[str, Any], **fields: Any) -> dict[str, Any]:
    made = made_up.status(NOW) | {"healthy": True, "troubles": []}
    return {**made, "daemon": {**made["daemon"], "version": __version__}, "items": list(items), **fields}


USUAL = status(
    item(
        "namenode",
        role="holding",
        leader='{"Node":"vm7","Port":8020}',
        lease_left_s=21.34,
        last_hook=hook("ok", detail="exit 0"),
    ),
    item(
        "backup",
        since_s=4,
        last_hook=hook("failed", detail="exit 1"),
        last_error={
            "at": "2026-11-21T14:59:56.000Z",
            "text": "on_acquire[0] failed: exit 1",
            "over_at": None,
        },
        warnings=["does not contend before 2026-11-21T15:00:06.000Z, after a loss of its own making"],
    ),
    item(
        "rebuild",
        kind="semaphore",
        limit=3,
        effective_limit=2,
        holders=[{"session": "s1", "value": "vm1"}, {"session": "s2", "value": "vm2"}],
        last_hook=hook("running"),
    ),
)


def test_the_table_shows_every_item_at_a_glance() -> None:
    assert lines(USUAL, None, colours=False) == [
        f"vm7: healthy, up 3d4h, pid 812, version {__version__};"
        " Consul http://127.0.0.1:8500 answered 200ms ago",
        "",
        "  NAME      KIND       ROLE     SINCE  LEADER            LEASE  LAST HOOK                                  LAST ERROR",  # noqa: E501
        "* namenode  election   holding  3m12s  vm7               21s    ok on_acquire[0] 120ms                     -",  # noqa: E501
        "  backup    election   waiting  4s     -                 -      FAILED on_acquire[0] after 120ms (exit 1)  4s ago: on_acquire[0] failed: exit 1",  # noqa: E501
        "  rebuild   semaphore  waiting  3m12s  2 of 2: vm1, vm2  -      running on_acquire[0] 120ms                -",  # noqa: E501
        "",
        "warning: backup: does not contend before 2026-11-21T15:00:06.000Z, after a loss of its own making",
    ]


def test_a_holder_without_a_value_is_shown_by_its_session() -> None:
    """`consul lock -n` writes no value."""
    held = item(
        "b",
        kind="semaphore",
        limit=2,
        holders=[{"session": "s1", "value": ""}, {"session": "s2", "value": "vm"}],
    )
    assert any("2 of 2: s1, vm" in line for line in lines({**USUAL, "items": [held]}, None, colours=False))


def test_another_version_than_the_installed_one_is_a_warning() -> None:
    """An upgrade that was refused leaves the former process running."""
    older = {**USUAL, "daemon": {**USUAL["daemon"], "version": "0.0.9"}}
    how = "`systemctl restart consul-supervisor` starts it and keeps what this node holds"
    warning = f"warning: version 0.0.9 runs, and {__version__} is installed: {how}"
    assert warning in lines(older, None, colours=False)
    assert not any("installed" in line for line in lines(USUAL, None, colours=False))


def test_a_leader_that_nobody_can_tell_is_unknown() -> None:
    led = item("db", leader=None, leader_unknown_since="2026-11-21T14:59:56.000Z")
    assert any("unknown since 14:59:56Z" in line for line in lines(status(led), None, colours=False))
    led |= {"last_leader": {"node": "n1", "since": "2026-11-21T14:00:00.000Z"}}
    for since in (led["leader_unknown_since"], None):
        led["leader_unknown_since"] = since
        assert any(", last n1" in line for line in lines(status(led), None, colours=False))


@pytest.mark.parametrize(
    ("over_at", "shown"),
    [
        pytest.param(None, "8m20s ago: Consul does not answer", id="goes on"),
        pytest.param("14:57:40", "8m20s ago, over: Consul did not answer", id="over"),
        pytest.param("14:54:59", "-", id="long over"),
    ],
)
def test_an_error_that_is_over_is_marked_so_and_soon_left_out(over_at: str | None, shown: str) -> None:
    error = {"at": "2026-11-21T14:51:40.000Z", "text": shown.split(": ")[-1]}
    told = item("a", last_error={**error, "over_at": over_at and f"2026-11-21T{over_at}.000Z"})
    assert lines(status(told), None, colours=False)[3].endswith(f"  {shown}")
    below = [line for line in lines(status(told), 80, colours=False) if line.startswith("last error")]
    assert below == ([] if shown == "-" else [f"last error: a: {shown}"])


def test_eighty_columns_show_the_errors_below_the_table() -> None:
    page = lines(USUAL, 80, colours=False)
    assert page[2:6] == [
        "  NAME      KIND       ROLE     SINCE  LEADER            LEASE  LAST HOOK",
        "* namenode  election   holding  3m12s  vm7               21s    ok on_acquire[0…",
        "  backup    election   waiting  4s     -                 -      FAILED on_acqui…",
        "  rebuild   semaphore  waiting  3m12s  2 of 2: vm1, vm2  -      running on_acqu…",
    ]
    assert page[-1] == "last error: backup: 4s ago: on_acquire[0] failed: exit 1"
    assert page[-3:-1] == [
        "warning: backup: does not contend before 2026-11-21T15:00:06.000Z, after a loss",
        "  of its own making",
    ]


def test_a_name_is_whole_before_anything_else_is_shown() -> None:
    name = "n" * 30
    for columns in (40, 60, 80, 120):
        page = lines(status(item(name, leader="l" * 40, last_hook=hook("ok"))), columns, colours=False)
        assert page[3].startswith(f"  {name}"), page[3]


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        ('{"Node": "vm1", "Port": 1}', "vm1"),
        ('{"Node": ""}', '{"Node": ""}'),
        ('{"Node": 7}', '{"Node": 7}'),
        ('["Node"]', '["Node"]'),
        ("[" * 100_000, "["),
        ("vm1", "vm1"),
        ("\x1b[2J", r"\x1b[2J"),
        ('{"Node": "\\u001b[2J"}', r"\x1b[2J"),
    ],
)
def test_a_leader_is_shown_by_its_node(value: str, shown: str) -> None:
    page = lines(status(item("a", leader=value)), None, colours=False)
    assert page[3].split(maxsplit=4)[4].startswith(shown) and page[3].isprintable()


def test_no_line_is_wider_than_the_terminal() -> None:
    odd = item("x" * 63, role="ineligible", leader="日本語 e\u0301 \x1b[31m" * 30, warnings=["w 日本 " * 40])
    full = status(*USUAL["items"], odd, healthy=False, troubles=["a is stuck: " + "t" * 300])
    for columns in (*range(1, 130), 200, 1000):
        for line in lines(full, columns, colours=False):
            assert width(line) <= columns and line.isprintable(), line


def test_the_table_holds_no_control_characters() -> None:
    """A user who may write a key in Consul could otherwise write to an operator's terminal."""
    bad = "\x1b]0;owned\x07\x1b[2J\r\n\u202e\x9b"
    error = {"at": AT, "text": bad, "over_at": None}
    each = [
        item("a", leader=bad, last_error=error, last_hook=hook("failed", bad, bad), warnings=[bad]),
        item("b", kind="semaphore", limit=1, holders=[{"session": bad, "value": bad}]),
    ]
    for columns in (None, 80, 200):
        page = lines(status(*each, troubles=[bad], healthy=False), columns, colours=False)
        assert all(line.isprintable() for line in page)
    assert r"\x1b]0;owned\x07" in page[3]


def test_colours_mark_holders_and_change_no_letter() -> None:
    full = status(*USUAL["items"], item("s", role="stuck"), healthy=False, troubles=["s is stuck"])
    for columns in (None, 80):
        painted = lines(full, columns, colours=True)
        assert [re.sub(r"\x1b\[[0-9;]*m", "", line) for line in painted] == lines(
            full, columns, colours=False
        )
        assert painted[3].startswith("\x1b[1;32m* namenode") and painted[3].endswith("\x1b[0m")
        assert painted[4].startswith("  backup")
        assert painted[6].startswith("\x1b[31m  s ")


def test_the_table_shows_troubles_and_a_silent_consul() -> None:
    consul = {"address": "http://127.0.0.1:8500", "answered_s_ago": None, "token_refused": True}
    page = lines(
        status(item("a"), consul=consul, healthy=False, troubles=["a is stuck"]), None, colours=False
    )
    assert page[0].startswith("vm7: NOT HEALTHY") and page[0].endswith(
        "has not answered yet, REFUSES THE TOKEN"
    )
    assert page[-1] == "trouble: a is stuck"


@pytest.mark.parametrize(
    ("length_s", "text"),
    [
        (-5, "0s"),
        (0.9, "0s"),
        (59.9, "59s"),
        (60, "1m0s"),
        (192, "3m12s"),
        (18120, "5h2m"),
        (1047600, "12d3h"),
    ],
)
def test_a_duration_has_its_two_largest_units(length_s: float, text: str) -> None:
    assert duration(length_s) == text


def test_a_paused_holder_is_shown_as_paused() -> None:
    """Otherwise no operator would see before the loss that this node will not contend again."""
    shown = lines(
        status(item("a", role="holding", paused=True), item("b", role="paused", paused=True)),
        120,
        colours=False,
    )
    text = "\n".join(shown)
    assert "holding, paused" in text and "paused, paused" not in text
