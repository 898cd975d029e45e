"""The notifications of systemd, received by a socket that stands for it, and the decisions behind them."""

import socket
import uuid
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from supervisor.core.actions import EMPTY_RECORD, Role, RoleChanged
from supervisor.core.contender.creation import new_contender
from supervisor.core.contender.state import Contender
from supervisor.core.contenders import Contenders
from supervisor.core.events import Answered, Event, StopAsked, Tick
from supervisor.core.machines.record import RecordKeeper
from supervisor.core.machines.session import Session
from supervisor.core.machines.tenure import Phase, Tenure
from supervisor.core.outcomes import Unknown
from supervisor.core.requests import ReadKey
from supervisor.core.settings import ElectionSettings, SessionSettings
from supervisor.core.times import NEVER
from supervisor.reporting.telemetry.systemd import (
    PING_INTERVAL_S,
    STATUS_CHARS_MAX,
    SystemdNotifier,
    is_losing,
    ping_interval_s,
    status_line,
    unanswered,
)
from tests.support.consul import Agent
from tests.support.log_written import Written
from tests.support.supervisor import Supervisor, until

TENURE = Tenure("session", 7, 3, 1, 0.0, b"", None)


STOPPED = {"winding_up": True, "session": Session(), "record_keeper": RecordKeeper(EMPTY_RECORD)}
PARTS: dict[Role, dict[str, Any]] = {
    Role.ACQUIRING: {"tenure": TENURE},
    Role.HOLDING: {"tenure": replace(TENURE, phase=Phase.HOLDING)},
    Role.LOSING: {"tenure": replace(TENURE, phase=Phase.LOSING)},
    Role.STUCK: {"tenure": replace(TENURE, phase=Phase.STUCK)},
    Role.PAUSED: {"paused_until": NEVER},
    Role.RESTING: {"rests_until": 60.0},
    Role.STOPPED: STOPPED,
}


def contender(name: str, role: Role = Role.WAITING, *, contend: bool = True) -> Contender:
    settings = ElectionSettings(name, f"service/{name}", b"", SessionSettings(name), contend=contend)
    made = replace(new_contender(settings, spread=0.0, instance="i"), **PARTS.get(role, {}))
    assert made.role is role or not contend
    return made


def answered(name: str) -> Answered:
    """Return a failed answer, which counts as an answer because it is in the log."""
    return Answered(ReadKey(name, 0.0, 1.0, name), Unknown("refused"))


class Systemd:
    """The socket of systemd, and the lines that it received."""

    def __init__(self, address: str) -> None:
        self.address = address
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.socket.setblocking(False)
        self.socket.bind("\0" + address[1:] if address.startswith("@") else address)

    def received(self) -> list[str]:
        """Return every line since the last call."""
        lines: list[str] = []
        while True:
            try:
                lines += self.socket.recv(65536).decode().splitlines()
            except BlockingIOError:
                return lines


@pytest.fixture(params=["path", "abstract"])
def systemd(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Systemd]:
    address = str(tmp_path / "notify") if request.param == "path" else f"@{uuid.uuid4().hex}"
    made = Systemd(address)
    with made.socket:
        yield made


class Watched:
    """A SystemdNotifier with a clock, and the warnings that it gave."""

    def __init__(self, address: str, *contenders: Contender, watchdog_s: float = 9.0) -> None:
        self.now = 100.0
        self.written = Written()
        self.node = Contenders(contenders)
        environ = {"NOTIFY_SOCKET": address, "WATCHDOG_USEC": str(round(watchdog_s * 1e6))}
        self.notify = SystemdNotifier(self.node, environ, lambda: self.now, self.written.log)

    def turn(self, event: Event, after_s: float = 0.0) -> None:
        self.now += after_s
        self.notify.on_step(event, ())

    def change(self, changed: Contender) -> None:
        """Change the role of this contender."""
        self.node.by_name[changed.settings.name] = changed
        self.notify.on_step(Tick(), [RoleChanged(changed.settings.name, changed.role)])


def test_ready_is_sent_when_each_item_has_had_an_answer_or_a_failure(systemd: Systemd) -> None:
    watched = Watched(systemd.address, contender("a"), contender("b"))
    watched.turn(Tick())
    watched.turn(answered("a"))
    told = systemd.received()
    assert "READY=1" not in told
    assert "STATUS=holds 0 of 2; waits for Consul's first answer: b" in told
    watched.turn(answered("b"))
    told = systemd.received()
    assert "READY=1" in told and "STATUS=holds 0 of 2" in told
    watched.turn(answered("a"))
    assert systemd.received() == []


def test_a_watchdog_ping_comes_with_the_step_that_is_due_for_it(systemd: Systemd) -> None:
    """A ping comes after a third of the time that systemd waits, and never without a step."""
    watched = Watched(systemd.address, watchdog_s=9.0)
    watched.turn(Tick())
    assert "WATCHDOG=1" in systemd.received()
    watched.turn(Tick(), after_s=2.9)
    assert systemd.received() == []
    watched.turn(Tick(), after_s=0.2)
    assert systemd.received() == ["WATCHDOG=1"]


def test_after_stopping_ready_is_never_sent(systemd: Systemd) -> None:
    watched = Watched(systemd.address, contender("a"))
    watched.turn(StopAsked())
    watched.turn(answered("a"))
    told = systemd.received()
    assert "STOPPING=1" in told and "READY=1" not in told
    assert not any(line.startswith("EXTEND") for line in told)


def test_a_stop_is_extended_with_every_ping_while_on_lose_runs(systemd: Systemd) -> None:
    """The first extension is sent at once, because the unit may give less time than one ping interval."""
    losing = contender("a", Role.LOSING)
    watched = Watched(systemd.address, contender("a"))
    watched.turn(answered("a"))
    watched.node.by_name["a"] = losing
    systemd.received()
    watched.turn(Tick(), after_s=5.0)
    assert systemd.received() == [
        "STATUS=holds 0 of 1; losing: a",
        "WATCHDOG=1",
    ]  # systemd's time does not run
    watched.turn(StopAsked())
    assert "EXTEND_TIMEOUT_USEC=20000000" in systemd.received()
    watched.turn(Tick(), after_s=5.0)
    assert "EXTEND_TIMEOUT_USEC=20000000" in systemd.received()


def test_a_start_that_winds_up_is_extended(systemd: Systemd) -> None:
    losing = replace(contender("a", Role.LOSING), tenure=replace(TENURE, phase=Phase.LAST_RESORT))
    Watched(systemd.address, losing).turn(Tick())
    assert "EXTEND_TIMEOUT_USEC=7000000" in systemd.received()  # as of any start that may stand still


def test_a_reload_is_notified_with_its_time_and_its_end(systemd: Systemd) -> None:
    watched = Watched(systemd.address)
    watched.notify.reloading()
    assert systemd.received() == []  # a start is under way, which READY ends
    watched.turn(Tick())
    systemd.received()
    watched.notify.reloading()
    first, second = systemd.received()
    assert first == "RELOADING=1" and int(second.removeprefix("MONOTONIC_USEC=")) > 0
    watched.notify.reloaded()
    assert systemd.received() == ["READY=1"]


def test_lines_that_a_full_socket_does_not_take_are_sent_later(systemd: Systemd) -> None:
    watched = Watched(systemd.address, contender("a"))
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as other:
        other.setblocking(False)
        address = "\0" + systemd.address[1:] if systemd.address.startswith("@") else systemd.address
        with pytest.raises(BlockingIOError):
            while True:
                other.sendto(b"x\n", address)
    watched.turn(answered("a"))
    watched.turn(Tick())
    (complaint,) = watched.written.lines()
    assert complaint["event"] == "systemd" and systemd.address in complaint["why"]
    assert set(systemd.received()) == {"x"}
    watched.turn(Tick())
    assert {"READY=1", "WATCHDOG=1", "STATUS=holds 0 of 1"} == set(systemd.received())


@pytest.mark.parametrize("address", ["/missing/socket", "vsock:2:1234", "@" + "x" * 300, "/x\0y"])
def test_a_socket_that_cannot_be_reached_is_one_warning(address: str) -> None:
    watched = Watched(address, contender("a"))
    watched.turn(answered("a"))
    watched.turn(Tick())
    assert len(watched.written.lines()) == 1


@pytest.mark.parametrize(
    ("environ", "every_s"),
    [
        ({"WATCHDOG_USEC": "9000000"}, 3.0),
        ({"WATCHDOG_USEC": "9000000", "WATCHDOG_PID": "7"}, 3.0),
        ({"WATCHDOG_USEC": "9000000", "WATCHDOG_PID": "8"}, PING_INTERVAL_S),
        ({"WATCHDOG_USEC": "0"}, PING_INTERVAL_S),
        ({"WATCHDOG_USEC": "soon"}, PING_INTERVAL_S),
        ({"WATCHDOG_USEC": "²"}, PING_INTERVAL_S),
        ({}, PING_INTERVAL_S),
    ],
)
def test_the_watchdog_applies_only_to_the_process_that_it_names(
    environ: dict[str, str], every_s: float
) -> None:
    assert ping_interval_s(environ, 7) == every_s


def test_ready_does_not_wait_for_stopped_items() -> None:
    assert unanswered([contender("a", Role.STOPPED), contender("b"), contender("c")], {"c"}) == ("b",)


@pytest.mark.parametrize("phase", list(Phase))
def test_time_is_requested_while_a_tenure_is_wound_up(phase: Phase) -> None:
    assert is_losing(replace(contender("a"), tenure=replace(TENURE, phase=phase))) == (
        phase in (Phase.STOPPING, Phase.LOSING, Phase.LAST_RESORT)
    )


def test_the_status_line_names_held_items_and_then_the_worst_first() -> None:
    all_of_them = [
        contender("namenode", Role.HOLDING),
        contender("redis", Role.HOLDING),
        contender("r", Role.RESTING),
        contender("p", Role.PAUSED),
        contender("s", Role.STUCK),
        contender("w"),
        contender("gone", Role.STOPPED),
        contender("o", Role.OBSERVER, contend=False),
    ]
    assert (
        status_line(all_of_them)
        == "holds 2 of 6: namenode, redis; observes 1; stuck: s; paused: p; resting: r"
    )


def test_the_status_line_is_bounded() -> None:
    line = status_line([contender(f"{number:060}", Role.HOLDING) for number in range(100)])
    assert len(line) == STATUS_CHARS_MAX and line.endswith("…")


def test_the_daemon_notifies_systemd_and_its_hooks_cannot(
    shared_agent: Agent, unique: str, tmp_path: Path
) -> None:
    seen = tmp_path / "seen"
    hook = {"shell": f"env | grep -cE '^(NOTIFY_SOCKET|WATCHDOG_)' >>{seen}; true"}
    election = {"key": f"{unique}/k", "session": {"name": unique}, "on_acquire": [hook], "on_lose": [hook]}
    config = {"consul": {"address": shared_agent.url}, "elections": {"app": election}}
    systemd = Systemd(str(tmp_path / "notify"))
    environ = {"NOTIFY_SOCKET": systemd.address, "WATCHDOG_USEC": "3000000"}
    running = Supervisor(tmp_path / "node", config, environ)
    told: list[str] = []

    def was_sent(line: str) -> bool:
        told.extend(systemd.received())
        return line in told

    with systemd.socket:
        running.start()
        try:
            until(lambda: was_sent("STATUS=holds 1 of 1: app"), f"{told}")
            assert "READY=1" in told and "STOPPING=1" not in told
            told.clear()
            until(lambda: was_sent("WATCHDOG=1"), "the daemon sends pings")
            assert running.stop() == 0
            assert was_sent("STOPPING=1")
        finally:
            running.close()
    assert seen.read_text() == "0\n0\n"
    running.assert_no_fault()
