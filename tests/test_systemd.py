"""The unit that is shipped: systemd understands each line of it, and it fits the program."""

import configparser
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from supervisor.core.lease import EXCHANGE_MAX_S, LOCK_DELAY_MAX_S
from supervisor.exit_codes import CONFIGURATION

ROOT = Path(__file__).resolve().parents[1]
UNIT = ROOT / "systemd" / "consul-supervisor.service"
COMMAND = "/opt/consul-supervisor/bin/consul-supervisor"
EXPECTED = {
    "Unit": {
        "Description": "Hooks for this node's part in Consul elections and semaphores",
        "After": "consul.service network-online.target",
        "Wants": "network-online.target",
        "StartLimitIntervalSec": "0",
    },
    "Service": {
        "Type": "exec",
        "ExecStart": f"{COMMAND} run /etc/consul-supervisor",
        "StateDirectory": "consul-supervisor",
        "StateDirectoryMode": "0700",
        "RuntimeDirectory": "consul-supervisor",
        "RuntimeDirectoryPreserve": "restart",
        "KillMode": "mixed",
        "TimeoutStopSec": "90s",
        "Restart": "always",
        "RestartSec": "1",
        "RestartPreventExitStatus": "78",
    },
    "Install": {"WantedBy": "multi-user.target"},
}


def settings(text: str) -> dict[str, dict[str, str]]:
    """The unit's settings by section; a setting that stands there twice is an error."""
    parser = configparser.ConfigParser(interpolation=None, delimiters=("=",), comment_prefixes=("#",))
    parser.optionxform = str  # type: ignore[assignment,method-assign]
    parser.read_string(text)
    return {section: dict(parser[section]) for section in parser.sections()}


def complaints(unit: str, folder: Path) -> str:
    """What systemd has to say about a unit; where it is not installed, the settings it does not have."""
    # The command is not installed here, and systemd looks for it.
    file = folder / UNIT.name
    file.write_text(unit.replace(COMMAND, sys.executable))
    analyze = shutil.which("systemd-analyze")
    if analyze is None:
        return unknown(unit)
    argv = [analyze, "verify", "--man=no", str(file)]
    ran = subprocess.run(argv, check=False, capture_output=True, text=True, timeout=60)
    return ran.stdout + ran.stderr


def unknown(unit: str) -> str:
    """The settings that are not among those whose names were once checked against systemd's manual."""
    known = {(section, name) for section, expected in EXPECTED.items() for name in expected}
    given = {(section, name) for section, found in settings(unit).items() for name in found}
    return " ".join(sorted(f"{section}.{name}" for section, name in given - known))


def test_systemd_understands_every_line(tmp_path: Path) -> None:
    assert complaints(UNIT.read_text(), tmp_path) == ""


def test_a_misspelt_line_is_noticed(tmp_path: Path) -> None:
    """systemd-analyze exits with 0 then: only what it says tells."""
    assert "KilMode" in complaints(UNIT.read_text().replace("\nKillMode", "\nKilMode"), tmp_path)


def test_the_settings_are_these_and_no_others() -> None:
    assert settings(UNIT.read_text()) == EXPECTED


def test_every_setting_has_its_reason_above_it() -> None:
    """A comment right above it, or above the lines that it belongs with."""
    lines = UNIT.read_text().splitlines()
    for number, line in enumerate(lines):
        if "=" not in line or line.startswith("#") or line.startswith(("Description=", "WantedBy=")):
            continue
        above = number - 1
        while "=" in lines[above] and not lines[above].startswith("#"):
            above -= 1
        assert lines[above].startswith("#"), line


def test_a_configuration_that_cannot_be_used_is_not_started_again_and_again(tmp_path: Path) -> None:
    argv = [sys.executable, "-m", "supervisor", "run", str(tmp_path / "missing")]
    ran = subprocess.run(argv, check=False, capture_output=True, text=True, cwd=ROOT, timeout=60)
    assert ran.returncode == CONFIGURATION
    assert settings(UNIT.read_text())["Service"]["RestartPreventExitStatus"] == str(ran.returncode)


def test_a_stop_has_the_time_that_on_lose_may_take() -> None:
    """The largest lock-delay, then one exchange each for a write under way, release and destroy."""
    stop = settings(UNIT.read_text())["Service"]["TimeoutStopSec"]
    assert float(stop.removesuffix("s")) > LOCK_DELAY_MAX_S + 3 * EXCHANGE_MAX_S


@pytest.mark.parametrize("setting", ["StateDirectory", "RuntimeDirectory", "WatchdogSec"])
def test_nothing_is_set_that_the_program_does_not_use_yet(setting: str) -> None:
    uses = {"StateDirectory": "STATE_DIRECTORY", "RuntimeDirectory": "RUNTIME_DIRECTORY"}
    uses["WatchdogSec"] = "WATCHDOG_USEC"
    used = any(uses[setting] in module.read_text() for module in (ROOT / "supervisor").rglob("*.py"))
    assert (setting in settings(UNIT.read_text())["Service"]) == used
