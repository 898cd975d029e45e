"""The heavy modules that each command may import; modules are named, because times depend on the machine."""

import re
import subprocess
import sys
from collections.abc import Iterable
from functools import cache
from pathlib import Path

import pytest

from tests.support.captured import captured
from tests.support.consul import Agent
from tests.support.supervisor import COMMAND, ENVIRON, PATIENCE_S, ROOT, Supervisor

NOTHING: set[str] = set()
ASK = NOTHING  # to ask the daemon over its control socket
LOOP = {"asyncio", "concurrent", "logging", "ssl"}
HTTP = {"h11", "requests", "urllib3", "charset_normalizer", "idna", "http", "email"}
CORE = {
    f"supervisor.core.{name}" for name in ("requests", "outcomes", "actions", "events")
}  # a hundred classes, made at each start
SETTINGS = {"dataclasses", "inspect", "supervisor.core.settings", "supervisor.config.settings"}
CONSUL = LOOP | HTTP | CORE | SETTINGS
YAML = {"yaml"} | SETTINGS
VALIDATOR = {"jsonschema", "jsonschema_specifications", "referencing", "rpds", "attr", "attrs", "idna"}
DAEMON = CONSUL | YAML | {"structlog", "prometheus_client", "wsgiref", "supervisor.daemon.loop"}
HEAVY = (
    DAEMON
    | VALIDATOR
    | {"hypothesis", "supervisor.rehearsal.devagent"}
    | {f"supervisor.rehearsal.drill.{name}" for name in ("demo", "stage")}
)

GOOD = """
control_socket: /nonexistent
fleet: {prefix: imports}
elections: {app: {on_acquire: [{shell: a}], run: {exec: [a]}, session: {node_checks: [serfHealth]}}}
semaphores: {some: {limit: 2, on_lose: [{webhook: "https://h/"}]}}
"""
IMPORTED = re.compile(r"(?m)^import time: +\d+ \| +\d+ \| +(\S+)$")
TIMED = {"PYTHONPROFILEIMPORTTIME": "1"}


def heavy(stderr: str) -> set[str]:
    """Return the heavy modules that Python reports as imported, without this machine's own."""
    modules = set(IMPORTED.findall(stderr))
    assert "supervisor.commands.cli" in modules, stderr
    return HEAVY & (modules | {name.partition(".")[0] for name in modules}) - of_any_program()


@cache
def of_any_program() -> set[str]:
    """Return the modules that this machine imports into every Python."""
    argv = [sys.executable, "-X", "importtime", "-c", "pass"]
    done = subprocess.run(argv, capture_output=True, text=True, env=ENVIRON, timeout=PATIENCE_S, check=True)
    return {name.partition(".")[0] for name in IMPORTED.findall(done.stderr)}


def imported(arguments: Iterable[str], code: int, agent: Agent) -> set[str]:
    """Return the modules that the command imports; it ends with this code."""
    argv, environ = [*COMMAND, *arguments], {**ENVIRON, **TIMED, "CONSUL_HTTP_ADDR": agent.url}
    done = captured(argv, cwd=ROOT, env=environ, timeout=PATIENCE_S)
    assert done.returncode == code, IMPORTED.sub("", done.stderr).strip()
    return heavy(done.stderr)


@pytest.mark.parametrize(
    ("command", "code", "may"),
    [
        ("--help", 0, NOTHING),
        ("check", 2, NOTHING),
        ("schema", 0, NOTHING),
        ("status --socket /nonexistent", 69, ASK),
        ("status", 69, ASK | CONSUL),  # says how the last daemon ended
        ("status --config GOOD", 69, ASK | YAML | CONSUL),
        ("pause app", 69, ASK),
        ("pause app --config GOOD", 69, ASK | YAML),
        ("plan --failover 50s --on-lose 5s", 0, SETTINGS),
        ("policy GOOD", 0, YAML | VALIDATOR | CONSUL),
        ("check GOOD", 0, YAML | VALIDATOR | LOOP),
        ("test-hook none on_lose[0] --config GOOD", 2, YAML | VALIDATOR),
        ("test-hook app on_acquire[0] --config GOOD", 1, YAML | VALIDATOR | CONSUL),
        ("check BAD", 78, YAML | VALIDATOR),
        ("check GOOD --connect", 0, YAML | VALIDATOR | CONSUL),
        ("drill BAD", 78, YAML | VALIDATOR),
        # as members, history, sessions and wait:
        ("leader app --config GOOD", 1, YAML | VALIDATOR | CONSUL),
        ("leader --key app/leader", 1, CONSUL),
        ("lock imports/key -- true", 0, CONSUL),
        ("status --cluster --config GOOD", 0, YAML | VALIDATOR | CONSUL),
        ("wait app --for holding --timeout 0s --socket /nonexistent", 69, ASK),
    ],
)
def test_a_command_imports_no_more_than_it_needs(
    command: str, code: int, may: set[str], shared_agent: Agent, tmp_path: Path
) -> None:
    good, bad = tmp_path / "good.yaml", tmp_path / "bad.yaml"
    good.write_text(GOOD)
    bad.write_text("elections: {app: {keey: a}}")
    files = {"GOOD": str(good), "BAD": str(bad)}
    arguments = [files.get(word, word) for word in command.split()]
    assert imported(arguments, code, shared_agent) <= may


def test_a_log_by_journalds_protocol_imports_no_structlog() -> None:
    made = "from supervisor.reporting.telemetry.log import Log; Log('info', 'journal', float)"
    done = subprocess.run([sys.executable, "-c", f"{made}; import sys; sys.exit('structlog' in sys.modules)"])
    assert done.returncode == 0


def test_neither_run_nor_a_reload_imports_the_validator(
    tmp_path: Path, shared_agent: Agent, unique: str
) -> None:
    election = {"key": unique, "session": {"name": unique, "lock_delay": "20s"}, "on_lose": [{"shell": ":"}]}
    config = {"consul": {"address": shared_agent.url}, "log": {"format": "json"}}
    node = Supervisor(tmp_path / "node", {**config, "elections": {"app": election}}, TIMED)
    node.start()
    try:
        node.wait_line("role", role="holding")
        node.rewrite({**config, "elections": {"app": {**election, "on_change": [{"shell": ":"}]}}})
        reload = ["reload", "--socket", str(node.folder / "control.sock")]
        assert imported(reload, 0, shared_agent) <= ASK
        node.wait_line("reloaded")
        node.rewrite({**config, "elections": {"app": {**election, "keey": "a"}}})
        assert imported(reload, 78, shared_agent) <= ASK
        node.wait_line("reload-refused")
        assert node.stop() == 0
        assert heavy(node.log_text) <= DAEMON
    finally:
        node.close()
