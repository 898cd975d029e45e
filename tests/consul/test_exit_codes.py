"""Every exit code of every command, of the real program beside a real Consul and a real daemon.

``CASES`` is the table of commands, in a world without other events. ``ELSEWHERE`` names the cases that take
longer than a command or need more than this world.
"""

import shutil
import signal
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from supervisor.commands.cli.exit_codes import OF_ALL
from supervisor.commands.cli.table import COMMANDS
from supervisor.commands.cli.terminal import EXIT_CODES
from supervisor.errors import CommandError
from tests.support.captured import captured
from tests.support.consul import Agent, free_ports
from tests.support.supervisor import COMMAND, ENVIRON, PATIENCE_S, ROOT, Supervisor, until

DAEMON_COMMANDS = ("status", "events", "holds", "recover", "confirm-off", "pause", "resume", "step-down")

# command, exit code, arguments; {…} are the fields of World
CASES = [
    ("run", 1, "{daemon}"),  # another daemon uses its state_dir
    ("run", 78, "{bad}"),
    ("check", 0, "{good}"),
    ("check", 0, "{good} --connect"),
    ("check", 0, "{good} --json"),
    ("check", 69, "{unreachable} --connect"),
    ("check", 69, "{unreachable} --connect --json"),
    ("check", 78, "{bad}"),
    ("check", 78, "{bad} --json"),
    ("check", 78, "{denied} --connect"),
    ("policy", 0, "{good}"),
    ("policy", 0, "{denied} --for observer"),
    ("policy", 69, "{unreachable}"),
    ("policy", 78, "{bad}"),
    ("plan", 0, "--failover 50s --on-lose 5s"),
    ("plan", 1, "--failover 20s --on-lose 5s"),
    ("test-hook", 0, "broken on_acquire[0] --config {daemon}"),
    ("test-hook", 1, "broken on_lose[0] --config {daemon}"),
    ("test-hook", 2, "broken on_change[0] --config {daemon}"),
    ("test-hook", 78, "free on_lose[0] --config {bad}"),
    ("leader", 0, "held --config {daemon}"),
    ("leader", 1, "free --config {good}"),
    ("leader", 2, "none --config {good}"),
    ("leader", 69, "free --config {unreachable}"),
    ("leader", 78, "free --config {bad}"),
    ("leader", 0, "held --json --config {daemon}"),
    ("members", 0, "held --config {daemon}"),
    ("members", 1, "free --config {good}"),
    ("members", 2, "none --config {good}"),
    ("members", 69, "free --config {unreachable}"),
    ("members", 78, "free --config {bad}"),
    ("history", 0, "held --json --config {daemon}"),
    ("history", 1, "free --config {good}"),
    ("history", 2, "slots --config {daemon}"),
    ("history", 2, "none --config {good}"),
    ("history", 69, "free --config {unreachable}"),
    ("history", 78, "free --config {fleetless}"),
    ("sessions", 0, "--config {daemon}"),
    ("sessions", 1, "destroy 2f8e9dd4-3c55-4c9a-9a0e-0f3c1c7a8a11 --yes --config {daemon}"),
    ("sessions", 2, "destroy"),
    ("sessions", 2, "destroy x --config {daemon}"),
    ("sessions", 2, "end 2f8e9dd4-3c55-4c9a-9a0e-0f3c1c7a8a11"),
    ("sessions", 2, "--yes --config {daemon}"),
    ("sessions", 69, "--config {unreachable}"),
    ("sessions", 78, "--config {bad}"),
    ("wait", 0, "held --for holding --config {daemon}"),
    ("wait", 0, "held --for leader --config {daemon}"),
    ("wait", 1, "free --for leader --timeout 0s --config {good}"),
    ("wait", 1, "seen --for holding --timeout 0s --config {daemon}"),
    ("wait", 2, "slots --for leader --config {daemon}"),
    ("wait", 2, "none --for holding --config {daemon}"),
    ("wait", 69, "free --for free --timeout 0s --config {unreachable}"),
    ("wait", 78, "free --for free --config {bad}"),
    ("status", 0, "--cluster --config {daemon}"),
    ("status", 2, "--cluster --socket /s --config {daemon}"),
    ("status", 69, "--cluster --config {unreachable}"),
    ("status", 78, "--cluster --config {bad}"),
    ("verify", 2, "none --session {session} --config {good}"),
    ("verify", 0, "--key {unique}/rival --session {session}"),
    ("verify", 1, "--key {unique}/none --session {session}"),
    ("verify", 69, "--key {unique}/rival --session {session}"),
    ("verify", 78, "--key {unique}/rival --session {session}"),
    ("limit", 0, "slots 3 --config {daemon}"),
    ("limit", 1, "unmade 3 --config {good}"),
    ("limit", 2, "none 3 --config {good}"),
    ("limit", 69, "unmade 3 --config {unreachable}"),
    ("limit", 78, "unmade 3 --config {bad}"),
    ("status", 0, "--config {daemon}"),
    ("status", 0, "held --json --config {daemon}"),
    ("events", 0, "--since 1h --config {daemon}"),
    ("events", 0, "held --json --config {daemon}"),
    ("holds", 0, "held --config {daemon}"),
    ("holds", 1, "seen --config {daemon}"),
    ("recover", 0, "broken --config {daemon}"),
    ("recover", 1, "held --config {daemon}"),
    ("confirm-off", 1, "held --config {daemon}"),
    ("pause", 0, "held --config {daemon}"),
    ("pause", 1, "seen --config {daemon}"),
    ("resume", 0, "held --config {daemon}"),
    ("resume", 1, "seen --config {daemon}"),
    ("step-down", 1, "seen --config {daemon}"),
    ("drain", 1, "--config {daemon}"),
    ("drain", 69, "--socket {folder}/none"),
    ("drain", 78, "--config {folder}/none.yaml"),
    ("undrain", 69, "--socket {folder}/none"),
    ("undrain", 78, "--config {folder}/none.yaml"),
    ("reload", 0, "--config {daemon}"),
    ("reload", 69, "--socket {folder}/none"),
    ("reload", 78, "--config {folder}/none.yaml"),
    ("lock", 0, "codes/locked -- true"),
    ("lock", 1, "--wait 0 codes/rival -- true"),
    ("lock", 2, "codes/locked"),
    ("lock", 2, "-n 2 codes/slots/.lock -- true"),
    ("lock", 2, "-n 2 --every 5m codes/locked -- true"),
    ("lock", 69, "--wait 0 codes/locked -- true"),
    ("lock", 78, "codes/locked -- true"),
    ("lock", 126, "codes/locked -- /etc/passwd"),
    ("lock", 127, "codes/locked -- no-such-program"),
    ("drill", 78, "{bad}"),
    ("schema", 0, ""),
    ("complete", 0, "help"),
    ("help", 0, "status"),
    ("help", 2, "fly"),
    ("version", 0, ""),
    ("dev-agent", 1, "--port {taken}"),
    *((name, 2, "none --config {daemon}") for name in DAEMON_COMMANDS),
    *((name, 69, "held --socket {folder}/none") for name in DAEMON_COMMANDS),
    *((name, 78, "held --config {folder}/none.yaml") for name in DAEMON_COMMANDS),
    *((name, 2, "--no-such-option") for name in COMMANDS),
]
ENVIRONMENTS = {
    ("lock", 69): {"CONSUL_HTTP_ADDR": "{nobody}"},
    ("lock", 78): {"CONSUL_HTTP_ADDR": "ftp://x"},
    ("verify", 69): {"CONSUL_HTTP_ADDR": "{nobody}"},
    ("verify", 78): {"CONSUL_HTTP_ADDR": "ftp://x"},
}
ELSEWHERE = {
    ("run", 0): "tests/consul/elections/test_stop.py",
    ("status", 1): "tests/consul/elections/test_events.py",
    ("step-down", 0): "tests/consul/elections/test_reload.py",
    ("confirm-off", 0): "tests/consul/elections/test_fence.py",
    ("drain", 0): "tests/consul/elections/test_draining.py",
    ("undrain", 0): "tests/consul/elections/test_draining.py",
    ("undrain", 1): "tests/consul/elections/test_draining.py",
    ("reload", 1): "tests/consul/elections/test_operating_in_silence.py",
    ("drill", 0): "tests/processes/test_drill.py",
    ("drill", 1): "tests/processes/test_drill.py",
    ("demo", 0): "tests/processes/test_demo.py",
    ("demo", 1): "tests/processes/test_demo.py",
    ("dev-agent", 0): "tests/consul/devagent/test_programs.py",
}


@dataclass(frozen=True)
class World:
    """Files, good and bad, with a daemon's file, a Consul and the holders in it."""

    folder: Path
    daemon: Path
    good: Path
    bad: Path
    denied: Path
    unreachable: Path
    fleetless: Path
    unique: str
    session: str
    url: str
    nobody: str
    taken: int

    def fill(self, text: str) -> str:
        return text.format(**vars(self))


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """Return a daemon that holds ``held`` and ``slots``, observes ``seen``, and is stuck with ``broken``."""
    folder = Path(tempfile.mkdtemp(prefix="codes-"))
    guard = {"acl": {"enabled": True, "default_policy": "deny"}}
    with (
        Agent(tmp_path_factory.mktemp("open") / "consul") as agent,
        Agent(tmp_path_factory.mktemp("guarded") / "consul", config=guard) as guarded,
    ):
        supervisor = Supervisor(folder, config_of(folder, agent))
        with supervisor:
            for name in ("held", "slots", "broken"):
                supervisor.wait_line("role", item=name, role="holding")
            agent.session_destroy(agent.kv_get("codes/broken")["Session"])  # type: ignore[index]
            supervisor.wait_line("role", item="broken", role="stuck")
            until(lambda: agent.kv_get("codes/history/held"), "its tenure is told")
            yield world_of(folder, supervisor, agent, guarded)
            assert supervisor.running
            shutil.rmtree(folder)


def config_of(folder: Path, agent: Agent) -> dict[str, object]:
    keys = {name: {"key": f"codes/{name}"} for name in ("held", "seen", "broken")}
    return {
        "consul": {"address": agent.url},
        "fleet": {"prefix": "codes"},
        "control_socket": str(folder / "c.sock"),
        "elections": {
            "held": keys["held"],
            "seen": {**keys["seen"], "contend": False},
            "broken": {
                **keys["broken"],
                "on_acquire": [{"exec": ["true"]}],
                "on_lose": [{"exec": ["false"]}],
            },
        },
        "semaphores": {"slots": {"limit": 2}},
    }


def world_of(folder: Path, supervisor: Supervisor, agent: Agent, guarded: Agent) -> World:
    (port,) = free_ports(1)
    nobody = f"http://127.0.0.1:{port}"
    session = agent.session_create(TTL="600s")
    assert agent.acquire("codes/rival", session, b"x")
    items = "elections: {free: {key: codes/free}}\nsemaphores: {unmade: {limit: 2}}\n"
    texts = {
        "good": f"consul: {{address: '{agent.url}'}}\nfleet: {{prefix: codes}}\n{items}",
        "fleetless": f"consul: {{address: '{agent.url}'}}\n{items}",
        "denied": f"consul: {{address: '{guarded.url}'}}\n{items}",
        "unreachable": f"consul: {{address: '{nobody}'}}\nfleet: {{prefix: codes}}\n{items}",
        "bad": "control_socket: 7\nelections: {free: {keey: 1}}\n",
    }
    files = {name: folder / f"{name}.yaml" for name in texts}
    for name, text in texts.items():
        files[name].write_text(text)
    places = {"folder": folder, "daemon": supervisor.config_path, **files}
    return World(**places, unique="codes", session=session, url=agent.url, nobody=nobody, taken=agent.port)


@pytest.mark.long
@pytest.mark.parametrize(
    ("name", "code", "arguments"),
    CASES,
    ids=[f"{name}-{code}-{at}" for at, (name, code, _) in enumerate(CASES)],
)
def test_a_command_ends_with_the_documented_code(world: World, name: str, code: int, arguments: str) -> None:
    environ = {"CONSUL_HTTP_ADDR": world.url} if name in ("verify", "lock") else {}
    environ |= {key: world.fill(value) for key, value in ENVIRONMENTS.get((name, code), {}).items()}
    if name == "run":  # the state_dir of the running daemon
        environ |= {"STATE_DIRECTORY": f"{world.folder}/state", "RUNTIME_DIRECTORY": str(world.folder)}
    argv = [*COMMAND, name, *world.fill(arguments).split()]
    done = captured(argv, cwd=ROOT, env={**ENVIRON, **environ}, timeout=PATIENCE_S)
    assert done.returncode == code, (done.stdout, done.stderr)
    assert "Traceback" not in done.stderr
    assert bool(done.stderr) is (code not in (0,) and not is_silent(name, code, arguments)), done.stderr


def is_silent(name: str, code: int, arguments: str) -> bool:
    """Return whether standard error must be blank: a no of ``holds`` or ``lock``, a report of ``check``."""
    return (
        (name, code) in (("holds", 1), ("lock", 1))
        or name == "check"
        and ("--json" in arguments or "--connect" in arguments)
    )


def test_a_bug_is_70_with_its_trace() -> None:
    """The fault is injected into the one place that every unforeseen exception reaches."""
    code = (
        "import sys; from supervisor.commands import cli; sys.argv[1:] = ['schema'];"
        "cli.import_module = lambda name: 1 / 0; sys.exit(cli.main())"
    )
    done = captured([COMMAND[0], "-c", code], cwd=ROOT, env=ENVIRON, timeout=PATIENCE_S)
    assert done.returncode == 70 and done.stdout == ""
    assert "ZeroDivisionError" in done.stderr and done.stderr.splitlines()[-1].endswith(
        "report the lines above"
    )


def test_each_kind_of_error_has_its_exit_code() -> None:
    assert set(CommandError.__subclasses__()) == set(EXIT_CODES)


def test_ctrl_c_is_130_without_a_trace() -> None:
    """The command waits for Consul, which does not answer."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        environ = {**ENVIRON, "CONSUL_HTTP_ADDR": f"127.0.0.1:{silent.getsockname()[1]}"}
        argv = ["env", "--default-signal=INT", *COMMAND, "leader", "--key", "a"]
        with subprocess.Popen(argv, stderr=subprocess.PIPE, cwd=ROOT, env=environ) as process:
            silent.settimeout(PATIENCE_S)
            with silent.accept()[0] as asked:
                assert asked.recv(1 << 16).startswith(b"GET /v1/kv/a?")
                process.send_signal(signal.SIGINT)
                _, said = process.communicate(timeout=PATIENCE_S)
    assert (process.returncode, said) == (130, b"")


# --- the table is complete -----------------------------------------------------------------------


def test_every_documented_code_of_a_command_has_its_case() -> None:
    told = {(name, code) for name, command in COMMANDS.items() for code in command.codes.keys() - OF_ALL}
    tested = {(name, code) for name, code, _ in CASES}
    everywhere = {(name, code) for name in COMMANDS for code in OF_ALL}
    assert told - tested == set(ELSEWHERE)
    assert tested - everywhere <= told
    for path in ELSEWHERE.values():
        assert (ROOT / path).exists()
