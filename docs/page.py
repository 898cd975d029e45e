"""The pictures in ``http.md``: the page as a browser draws it, with a status that shows all its parts.

python -m docs.page            draws page.png and page-phone.png (needs Debian's chromium)
python -m docs.page FOLDER     draws them there, and both in the dark
"""

import sys
import tempfile
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from supervisor.reporting.telemetry.formatting import remedy
from tests.support.browser import Browser
from tests.support.canned import CannedDaemon

FOLDER = Path(__file__).resolve().parent
DESKTOP = {"width": 1200, "height": 800, "scale": 1.5}
PHONE = {"width": 390, "height": 800, "scale": 1.5, "phone": True}
NAMENODE = "9b1f2c64-0c53-4a0e-8a6f-51d0c3a1e7b2"
REDIS = "6a02d9be-7c41-49f3-b5f0-2f8e11c7d935"
REBUILD = "c7e5a1d0-38b2-4f6d-9d54-0e6b7a9f2c18"
OTHER = "1d94f3b7-5e60-4c8a-a2b3-84c6d7e9f015"

Status = dict[str, Any]
Hook = tuple[str, float, float, str, str]  # name, begun after, took, result, detail


def status(now: datetime) -> Status:
    """Return the status of a node with three elections and a semaphore; one election is stuck."""
    stuck = f"redis is stuck: on_lose_failure[0] failed: exit 1; {remedy('redis')}"
    return {
        "version": 1,
        "daemon": {
            "version": "0.1.0",
            "node": "vm7",
            "pid": 812,
            "started": _ago(now, 273_600),
            "now": _ago(now, 0),
            "config": "/etc/consul-supervisor",
        },
        "healthy": False,
        "troubles": [stuck],
        "warnings": [],
        "consul": {
            "address": "http://127.0.0.1:8500",
            "answered_s_ago": 0.2,
            "token_refused": False,
            "fleet": None,
        },
        "last_event": _ago(now, 30),
        "items": [_namenode(now), _activemq(now), _redis(now), _rebuild(now)],
    }


def fleet() -> Status:
    """Return what a daemon whose status names a fleet tells of it: a node for each state of a check."""
    said = [
        ("vm2", "passing", "vm2: healthy", {"activemq": ("waiting", ""), "namenode": ("holding", "token 8")}),
        ("vm3", "critical", "TTL expired", {"namenode": ("waiting", "")}),
        ("vm4", "warning", "vm4: NOT HEALTHY", {"namenode": ("paused", "by root (kernel)")}),
        ("vm7", "passing", "vm7: healthy", {"namenode": ("holding", "token 48213")}),
    ]
    nodes = [
        {
            "node": name,
            "consul_node": f"consul-{name}",
            "page": f"http://{name}:8555/",
            "status": status_,
            "says": says,
            "items": {of: {"role": role, "detail": detail} for of, (role, detail) in items.items()},
            "left_out": 0,
        }
        for name, status_, says, items in said
    ]
    return {"version": 1, "why": None, "nodes": nodes}


def item(now: datetime, name: str, role: str, since_s: float, **more: Any) -> Status:
    """Return one item at rest, with these changes."""
    return {
        "name": name,
        "kind": "election",
        "key": f"service/{name}/leader",
        "role": role,
        "reason": "",
        "since": _ago(now, since_s),
        "holds": role == "holding",
        "paused": False,
        "paused_until": None,
        "drained": False,
        "paused_everywhere": None,
        "service": None,
        "service_registered": False,
        "leader": None,
        "leader_unknown_since": None,
        "last_leader": None,
        "session": "",
        "lock_index": 0,
        "fencing_token": 0,
        "slot": None,
        "lease_left_s": None,
        "lease_room_s": None,
        "lease_runs_out": False,
        "silent_since": None,
        "acts_until": None,
        "outage_s": None,
        "record_s": None,
        "watchdog_armed": None,
        "reset_in_s": None,
        "limit": None,
        "effective_limit": None,
        "holders": None,
        "command": None,
        "last_hook": None,
        "last_error": None,
        "warnings": [],
        "transitions": [],
        **more,
    }


def transition(now: datetime, ago_s: float, event: str, reason: str, *hooks: Hook) -> Status:
    """Return one transition that began ``ago_s`` before, with its hooks."""
    begun = now - timedelta(seconds=ago_s)
    attempts: dict[str, int] = {}
    shown = []
    for name, after_s, took_s, result, detail in hooks:
        attempts[name] = attempts.get(name, 0) + 1
        shown.append(
            {
                "hook": name,
                "attempt": attempts[name],
                "at": _ago(begun, -after_s),
                "duration_s": took_s if result != "running" else None,
                "result": result,
                "detail": detail,
            }
        )
    took_s = max((after_s + took_s for _, after_s, took_s, _, _ in hooks), default=0.0)
    return {
        "transition": f"{ago_s:.0f}-{event}",
        "event": event,
        "reason": reason,
        "at": _ago(begun, 0),
        "duration_s": took_s,
        "hooks": shown,
    }


def _last_hook(of: Status) -> Status:
    hook = of["hooks"][-1]
    return {"event": of["event"], **{name: value for name, value in hook.items() if name != "attempt"}}


def _namenode(now: datetime) -> Status:
    fence, promote = (
        ("on_acquire[0]", 0.004, 1.31, "ok", "exit 0"),
        ("on_acquire[1]", 1.32, 2.24, "ok", "exit 0"),
    )
    lines = [
        transition(now, 11_530, "acquire", "acquired", fence, promote),
        transition(now, 11_531, "change", "leader-changed", ("on_change[0]", 0.003, 0.31, "ok", "exit 0")),
        transition(now, 76_200, "change", "leader-changed", ("on_change[0]", 0.003, 0.28, "ok", "exit 0")),
        transition(
            now,
            76_214,
            "lose",
            "shutdown",
            ("on_lose[0]", 0.003, 2.6, "ok", "exit 0"),
            ("on_lose[1]", 2.61, 0.42, "ok", "exit 0"),
        ),
    ]
    return item(
        now,
        "namenode",
        "holding",
        11_526.4,
        reason="acquired",
        leader='{"Node": "vm7", "Port": 8020}',
        session=NAMENODE,
        lock_index=3,
        fencing_token=48_213,
        lease_left_s=27.9,
        lease_room_s=30.5,
        last_hook=_last_hook(lines[0]),
        transitions=lines,
    )


def _activemq(now: datetime) -> Status:
    lines = [
        transition(now, 93_100, "change", "leader-changed", ("on_change[0]", 0.004, 0.122, "ok", "exit 0"))
    ]
    return item(
        now,
        "activemq",
        "waiting",
        93_100,
        leader='{"Node": "vm4", "Port": 61616}',
        session=OTHER,
        last_hook=_last_hook(lines[0]),
        transitions=lines,
    )


def _redis(now: datetime) -> Status:
    lines = [
        transition(
            now, 232, "lose-failure", "lose-failed", ("on_lose_failure[0]", 0.004, 1.9, "failed", "exit 1")
        ),
        transition(
            now,
            244,
            "lose",
            "unhealthy",
            ("on_lose[0]", 0.003, 0.35, "ok", "exit 0"),
            ("on_lose[1]", 0.36, 5.01, "failed", "no end within 5s"),
            ("on_lose[1]", 6.4, 5.01, "failed", "no end within 5s"),
        ),
        transition(now, 52_810, "acquire", "acquired", ("on_acquire[0]", 0.004, 2.1, "ok", "exit 0")),
        transition(now, 52_811, "change", "leader-changed", ("on_change[0]", 0.003, 0.2, "ok", "exit 0")),
    ]
    return item(
        now,
        "redis",
        "stuck",
        230.1,
        reason="lose-failed",
        leader='{"Node": "vm7", "Port": 6379}',
        session=REDIS,
        lock_index=9,
        fencing_token=47_006,
        last_hook=_last_hook(lines[0]),
        last_error={"at": _ago(now, 230.1), "text": "on_lose_failure[0] failed: exit 1", "over_at": None},
        transitions=lines,
    )


def _rebuild(now: datetime) -> Status:
    lines = [
        transition(now, 41, "acquire", "acquired", ("on_acquire[0]", 0.005, 0.74, "ok", "exit 0")),
        transition(now, 42, "change", "leader-changed", ("on_change[0]", 0.003, 0.09, "ok", "exit 0")),
    ]
    return item(
        now,
        "rebuild",
        "holding",
        40.3,
        kind="semaphore",
        key="service/rebuild",
        reason="acquired",
        session=REBUILD,
        lock_index=1,
        fencing_token=51_877,
        slot=1,
        lease_left_s=22.4,
        lease_room_s=25.5,
        limit=3,
        effective_limit=3,
        holders=[
            {"session": OTHER, "value": '{"Node": "vm2"}'},
            {"session": REBUILD, "value": '{"Node": "vm7"}'},
        ],
        last_hook=_last_hook(lines[0]),
        transitions=lines,
    )


def _ago(now: datetime, seconds: float) -> str:
    return (now - timedelta(seconds=seconds)).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def draw(folder: Path, schemes: Sequence[str]) -> None:
    """Draw ``page.png`` and ``page-phone.png``, with ``-dark`` for that scheme."""
    now = datetime.now(UTC)
    with (
        tempfile.TemporaryDirectory() as own,
        CannedDaemon(status(now)) as daemon,
        Browser(Path(own)) as browser,
    ):
        for scheme in schemes:
            for name, size in (("page", DESKTOP), ("page-phone", PHONE)):
                browser.prefer(color_scheme=scheme, reduced_motion="reduce")
                browser.resize(**size)  # type: ignore[arg-type]
                browser.open(daemon.url)
                browser.wait("document.querySelectorAll('#list > li').length")
                browser.screenshot(folder / f"{name}{'-dark' if scheme == 'dark' else ''}.png")


def main(arguments: Sequence[str]) -> None:
    """Draw the pictures into the folder of the arguments, or beside the page."""
    if arguments:
        draw(Path(arguments[0]), ("light", "dark"))
    else:
        draw(FOLDER, ("light",))


if __name__ == "__main__":
    main(sys.argv[1:])
