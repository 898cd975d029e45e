"""The unit that is shipped: systemd understands each line, and the lines fit the program."""

import os
import shutil
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from supervisor.adapters.journal.format import state_line
from supervisor.adapters.journal.identity import MachineIdentity
from supervisor.adapters.runtime.driver import SLEEP_MAX_S
from supervisor.commands.cli.exit_codes import CONFIGURATION
from supervisor.config.lease_checks import RESTART_S
from supervisor.config.notification import UNIT_WATCHDOG_S, may_stand_still_s
from supervisor.core.actions import Point, Record
from supervisor.core.lease import EXCHANGE_MAX_S, LOCK_DELAY_MAX_S
from supervisor.reporting.telemetry.systemd import PINGS_PER_TIMEOUT
from tests.support.captured import captured
from tests.support.hung import hung, needs_root
from tests.support.patience import PATIENCE_S

ROOT = Path(__file__).resolve().parents[2]
UNIT = ROOT / "systemd" / "consul-supervisor.service"
COMMAND = "/opt/consul-supervisor/bin/consul-supervisor"
EXPECTED = {
    "Unit": {
        "Description": ["Hooks for this node's part in Consul elections and semaphores"],
        "After": ["consul.service network-online.target"],
        "Wants": ["network-online.target"],
        "StartLimitIntervalSec": ["0"],
    },
    "Service": {
        "Type": ["notify"],
        "ExecStart": [f"{COMMAND} run /etc/consul-supervisor"],
        "ExecReload": [f"{COMMAND} reload"],
        "EnvironmentFile": ["-/etc/default/consul-supervisor"],
        "UMask": ["0022"],
        "StateDirectory": ["consul-supervisor"],
        "StateDirectoryMode": ["0700"],
        "RuntimeDirectory": ["consul-supervisor"],
        "RuntimeDirectoryPreserve": ["yes"],
        "KillMode": ["mixed"],
        "RestartKillSignal": ["SIGKILL"],
        "SuccessExitStatus": ["SIGKILL"],
        "TimeoutStopSec": ["90s"],
        "Restart": ["always"],
        "RestartSec": ["1"],
        "RestartPreventExitStatus": ["78"],
        "WatchdogSec": ["10s"],
        "TimeoutStartSec": ["9s"],
        "TimeoutStartFailureMode": ["kill"],
        "WatchdogSignal": ["SIGKILL"],
        "OOMScoreAdjust": ["-100"],
        "OOMPolicy": ["continue"],
    },
    "Install": {"WantedBy": ["multi-user.target"]},
}
SANDBOX = {
    "ProtectSystem": ["full"],
    "ProtectHome": ["read-only"],
    "PrivateTmp": ["no"],
    "PrivateDevices": ["yes"],
    "ProtectKernelTunables": ["yes"],
    "ProtectKernelModules": ["yes"],
    "ProtectKernelLogs": ["yes"],
    "ProtectControlGroups": ["yes"],
    "ProtectClock": ["yes"],
    "ProtectHostname": ["yes"],
    "NoNewPrivileges": ["yes"],
    "RestrictSUIDSGID": ["yes"],
    "RestrictNamespaces": ["yes"],
    "RestrictRealtime": ["yes"],
    "LockPersonality": ["yes"],
    "SystemCallArchitectures": ["native"],
    "RestrictAddressFamilies": ["AF_UNIX AF_INET AF_INET6 AF_NETLINK AF_PACKET"],
    "CapabilityBoundingSet": [
        "CAP_CHOWN CAP_DAC_OVERRIDE CAP_DAC_READ_SEARCH CAP_FOWNER CAP_FSETID",
        "CAP_SETUID CAP_SETGID CAP_KILL CAP_SYS_PTRACE CAP_AUDIT_WRITE",
        "CAP_NET_ADMIN CAP_NET_RAW CAP_NET_BIND_SERVICE CAP_SYS_BOOT",
    ],
    "SystemCallFilter": ["@system-service", "reboot"],
    "SystemCallErrorNumber": ["EPERM"],
}
LISTS = ("CapabilityBoundingSet", "SystemCallFilter")  # each line adds to those before it
DROP_INS = sorted((ROOT / "systemd").glob("*.conf"))


def settings(text: str) -> dict[str, dict[str, list[str]]]:
    """Return the unit's settings by section, with the value of each of their lines."""
    found: dict[str, dict[str, list[str]]] = {}
    section = ""
    for line in text.splitlines():
        if line.startswith("["):
            section = line.strip("[]")
        elif line and not line.startswith("#"):
            name, _, value = line.partition("=")
            found.setdefault(section, {}).setdefault(name, []).append(value)
    return found


def complaints(unit: str, folder: Path) -> str:
    """Return systemd's complaints about a unit. Without systemd: the settings with unknown names."""
    # The command is not installed here, and systemd would miss it.
    file = folder / UNIT.name
    file.write_text(unit.replace(COMMAND, sys.executable))
    analyze = shutil.which("systemd-analyze")
    if analyze is None:
        return unknown(unit)
    argv = [analyze, "verify", "--man=no", str(file)]
    ran = captured(argv, timeout=PATIENCE_S)
    return ran.stdout + ran.stderr


def unknown(unit: str) -> str:
    """Return the settings whose names were not checked against systemd's manual."""
    known = {(section, name) for section, expected in EXPECTED.items() for name in expected}
    known |= {("Service", name) for name in SANDBOX}
    given = {(section, name) for section, found in settings(unit).items() for name in found}
    return " ".join(sorted(f"{section}.{name}" for section, name in given - known))


def test_systemd_understands_every_line_of_the_unit(tmp_path: Path) -> None:
    assert complaints(UNIT.read_text(), tmp_path) == ""


def test_the_unit_has_the_expected_settings_and_no_others() -> None:
    found = settings(UNIT.read_text())
    assert found == EXPECTED | {"Service": EXPECTED["Service"] | SANDBOX}
    assert not [name for name, values in found["Service"].items() if len(values) > 1 and name not in LISTS]


@pytest.mark.parametrize("drop_in", DROP_INS, ids=lambda file: file.name)
def test_systemd_understands_every_drop_in(drop_in: Path, tmp_path: Path) -> None:
    """systemd reads a drop-in after the unit, and its first lines say where it belongs."""
    text = drop_in.read_text()
    assert complaints(UNIT.read_text().replace("[Install]", f"{text}\n[Install]"), tmp_path) == ""
    assert "/etc/systemd/system/consul-supervisor.service.d/" in text


def test_systemd_does_not_restart_a_daemon_with_an_unusable_configuration(tmp_path: Path) -> None:
    argv = [sys.executable, "-m", "supervisor", "run", str(tmp_path / "missing")]
    ran = captured(argv, cwd=ROOT, timeout=PATIENCE_S)
    assert ran.returncode == CONFIGURATION
    assert settings(UNIT.read_text())["Service"]["RestartPreventExitStatus"] == [str(ran.returncode)]


def test_the_stop_timeout_of_the_unit_covers_on_lose() -> None:
    """The sum is the largest lock-delay, and an exchange each for a late write, release and destroy."""
    (stop,) = settings(UNIT.read_text())["Service"]["TimeoutStopSec"]
    assert float(stop.removesuffix("s")) > LOCK_DELAY_MAX_S + 3 * EXCHANGE_MAX_S


def test_check_computes_with_the_times_of_the_unit() -> None:
    service = settings(UNIT.read_text())["Service"]
    assert [f"{UNIT_WATCHDOG_S:g}s"] == service["WatchdogSec"]
    assert [f"{RESTART_S:g}"] == service["RestartSec"]
    assert service["TimeoutStartSec"] == [f"{UNIT_WATCHDOG_S - RESTART_S:g}s"]
    # A start that gives its first signs within a second, and then stands still, ends no later than any.
    assert 1.0 + may_stand_still_s({}) <= UNIT_WATCHDOG_S - RESTART_S


def test_the_watchdog_of_the_unit_leaves_time_for_late_pings() -> None:
    """A ping is sent with the first step after its time, which comes one second later at most."""
    assert UNIT_WATCHDOG_S / PINGS_PER_TIMEOUT + SLEEP_MAX_S < UNIT_WATCHDOG_S / 2


@needs_root
def test_a_start_that_waits_shows_that_it_lives_and_one_that_is_frozen_does_not(tmp_path: Path) -> None:
    """The file system of its file does not answer, which takes a start three seconds."""
    far = tmp_path / "far"
    far.mkdir()
    environ = {**os.environ, "NOTIFY_SOCKET": str(tmp_path / "notify"), "WATCHDOG_USEC": "4000000"}
    environ |= {"STATE_DIRECTORY": str(tmp_path / "state"), "RUNTIME_DIRECTORY": str(tmp_path)}
    with hung(far), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as systemd:
        systemd.bind(environ["NOTIFY_SOCKET"])
        systemd.settimeout(PATIENCE_S)
        argv = [sys.executable, "-m", "supervisor", "run", str(far / "c.yaml")]
        start = subprocess.Popen(argv, cwd=ROOT, env=environ, stderr=subprocess.DEVNULL)
        signs = [systemd.recv(100) for _ in range(3)]
        assert signs == [b"EXTEND_TIMEOUT_USEC=2000000\n"] * 3
        start.send_signal(signal.SIGSTOP)
        systemd.settimeout(2.0)
        with pytest.raises(TimeoutError):
            while True:
                systemd.recv(100)
        start.kill()
        assert start.wait() == -signal.SIGKILL


@needs_root
@pytest.mark.parametrize("step", [Point.STUCK, Point.LOSING])
def test_a_removal_of_the_package_names_what_is_stuck(tmp_path: Path, step: Point) -> None:
    folder = tmp_path / "consul-supervisor"
    folder.mkdir()
    identity = MachineIdentity("m", "h", "b")
    lines = [state_line(Record(each, session="s"), (), identity, "t") for each in (Point.STUCK, step)]
    (folder / "app.journal").write_bytes(b"".join(lines) + b" " * 100)
    script = f"mount --bind {tmp_path} /var/lib && sh {ROOT}/debian/consul-supervisor.prerm remove"
    done = captured(["unshare", "--mount", "sh", "-c", script])
    assert done.returncode == 0
    assert ("app is stuck: its on_lose has failed" in done.stderr) == (step is Point.STUCK), done.stderr
