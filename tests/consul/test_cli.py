"""Commands as an operator types them: output, stream and exit code."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.captured import captured
from tests.support.consul import Agent
from tests.support.examples import CONFIGURATIONS, VARIABLES, warnings_in
from tests.support.patience import PATIENCE_S
from tests.support.supervisor import COMMAND, ENVIRON, ROOT, command
from tests.support.turns import first_now

USAGE, UNREACHABLE, CONFIGURATION = 2, 69, 78
COMMANDS = ("run", "check", "leader", "verify", "recover", "pause", "resume", "schema")
BAD = """
elections:
  app:
    keey: a
    session: {ttl: 10}
    on_lose: [{shell: a, exec: [b]}]
"""


def one_line(text: str) -> bool:
    """Check that an error is one line with our name and without a trace."""
    return text.startswith("consul-supervisor: ") and text.count("\n") == 1


# --- help and usage ------------------------------------------------------------------------------


@pytest.mark.parametrize("name", [(), *((name,) for name in COMMANDS)], ids=" ".join)
def test_the_help_of_each_command_has_an_example(name: tuple[str, ...]) -> None:
    done = command(*name, "--help")
    assert (done.returncode, done.stderr) == (0, "")
    assert "consul-supervisor " + " ".join(name) in done.stdout and "example" in done.stdout


@pytest.mark.parametrize(
    "line",
    ["", "fly", "run", "run a b", "leader", "leader a --key b", "recover", "recover A", "pause"]
    + ["pause a --all", f"resume a --socket {'x' * 200}", "--fly"],
)
def test_wrong_usage_is_2_and_shows_the_usage(line: str) -> None:
    done = command(*line.split())
    assert (done.returncode, done.stdout) == (USAGE, "")
    assert done.stderr.startswith("usage: consul-supervisor") and "Traceback" not in done.stderr


# --- configuration -------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["run", "check", "leader"])
def test_a_bad_file_is_78_with_every_error_and_its_place(tmp_path: Path, name: str) -> None:
    file = tmp_path / "bad.yaml"
    file.write_text(BAD)
    where = ["app", "--config", str(file)] if name == "leader" else [str(file)]
    done = command(name, *where)
    assert (done.returncode, done.stdout) == (CONFIGURATION, "")
    lines = done.stderr.splitlines()
    if name == "check":
        assert lines.pop() == f"{file}: not valid, 3 faults"
    assert [line.startswith(f"{file}:") for line in lines] == [True] * 3, done.stderr
    for path in ("elections.app.keey", "elections.app.session.ttl", "elections.app.on_lose[0]"):
        assert path in done.stderr


def test_a_missing_token_file_is_78_and_one_line(tmp_path: Path) -> None:
    file = tmp_path / "c.yaml"
    file.write_text(f"consul: {{token_file: {tmp_path}/none}}\nelections: {{app: {{}}}}\n")
    for done in (command("run", str(file)), command("leader", "app", "--config", str(file))):
        assert done.returncode == CONFIGURATION, done.stderr
        assert f"cannot read the token file {tmp_path}/none" in done.stderr
        assert "Traceback" not in done.stderr


@pytest.mark.parametrize("tls", ["ca_file", "cert_file"])
def test_a_missing_tls_file_is_one_line_that_names_it(tmp_path: Path, tls: str) -> None:
    """``run`` repeats its requests, because a tool that renews certificates may replace them at any time."""
    other = f", key_file: {tmp_path}/none" if tls == "cert_file" else ""
    file = tmp_path / "c.yaml"
    file.write_text(
        f"consul: {{address: 'https://127.0.0.1:1', tls: {{{tls}: {tmp_path}/none{other}}}}}\n"
        "elections: {app: {}}\n"
    )
    done = command("leader", "app", "--config", str(file))
    assert done.returncode == UNREACHABLE
    assert one_line(done.stderr) and f"{tmp_path}/none" in done.stderr


@pytest.mark.parametrize("example", first_now(CONFIGURATIONS), ids=lambda path: path.stem)
def test_every_example_is_valid_and_has_no_warning(example: Path) -> None:
    """Programs and secrets of an example are absent on this machine, so those warnings do not count.

    The example that has every key has `outage` beside `run`, of which check warns.
    """
    done = command("check", str(example), environ=VARIABLES)
    assert (done.returncode, done.stderr) == (0, ""), done.stderr
    every_key = [each for each in warnings_in(done.stdout) if "fence.outage" in each and "start run" in each]
    assert warnings_in(done.stdout) == every_key and len(every_key) == (example.stem == "complete")


def test_schema_prints_the_schema_file_of_the_package() -> None:
    done = command("schema")
    assert (done.returncode, done.stderr) == (0, "")
    assert json.loads(done.stdout) == json.loads((ROOT / "schemas" / "config.schema.json").read_text())


def test_a_reader_that_closes_the_pipe_is_no_error() -> None:
    """``consul-supervisor schema | head -1``"""
    process = subprocess.Popen(
        [*COMMAND, "schema"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=ROOT, env=ENVIRON
    )
    assert process.stdout is not None and process.stderr is not None
    process.stdout.close()
    with process.stderr:
        assert process.stderr.read() == b""
    assert process.wait() == 0


# --- leader --------------------------------------------------------------------------------------


@pytest.fixture
def config(shared_agent: Agent, unique: str, tmp_path: Path) -> Path:
    """Return a file with one election, ``app``, whose key is this test's own."""
    file = tmp_path / "c.yaml"
    file.write_text(
        f"consul: {{address: '{shared_agent.url}'}}\nelections: {{app: {{key: {unique}/leader}}}}\n"
    )
    return file


def test_leader_prints_the_holders_value(shared_agent: Agent, unique: str, config: Path) -> None:
    session = shared_agent.session_create(TTL="60s")
    shared_agent.acquire(f"{unique}/leader", session, b'{"Node": "a"}')
    by_name = command("leader", "app", "--config", str(config))
    by_key = command("leader", "--key", f"{unique}/leader", environ={"CONSUL_HTTP_ADDR": shared_agent.url})
    for done in (by_name, by_key):
        assert (done.returncode, done.stdout, done.stderr) == (0, '{"Node": "a"}\n', "")
    shared_agent.session_destroy(session)


def test_leader_works_without_settings_that_only_the_daemon_needs(
    shared_agent: Agent, unique: str, config: Path
) -> None:
    """The unit sets variables that the shell of an operator does not have."""
    item = f"{{key: {unique}/leader, value: '${{NODE_ADDRESS}}', on_change: [{{webhook: '${{HOOK}}'}}]}}"
    items = f"{{app: {item}, other: {{key: '${{OTHER}}'}}}}"
    config.write_text(f"consul: {{address: '{shared_agent.url}'}}\nelections: {items}\n")
    session = shared_agent.session_create(TTL="60s")
    shared_agent.acquire(f"{unique}/leader", session, b"192.0.2.11")
    done = command("leader", "app", "--config", str(config))
    assert (done.returncode, done.stdout, done.stderr) == (0, "192.0.2.11\n", "")
    shared_agent.session_destroy(session)
    config.write_text("elections: {app: {key: '${UNSET}/leader'}}\n")
    done = command("leader", "app", "--config", str(config))
    assert done.returncode == CONFIGURATION and "the environment has no UNSET" in done.stderr


@pytest.mark.parametrize("there", [True, False])
def test_without_a_holder_leader_is_1(shared_agent: Agent, unique: str, config: Path, there: bool) -> None:
    """Also when a former leader's value is still there."""
    if there:
        shared_agent.kv_put(f"{unique}/leader", b"a")
    done = command("leader", "app", "--config", str(config))
    assert (done.returncode, done.stdout) == (1, "")
    assert one_line(done.stderr) and f"{unique}/leader" in done.stderr


def test_a_semaphore_has_no_leader(tmp_path: Path) -> None:
    config = tmp_path / "c.yaml"
    config.write_text("semaphores: {rebuild: {limit: 3}}")
    done = command("leader", "rebuild", "--config", str(config))
    assert (done.returncode, done.stdout) == (USAGE, "")
    assert one_line(done.stderr) and "a semaphore has holders" in done.stderr


def test_a_peer_that_is_not_consul_is_69_and_its_answer_is_quoted(shared_agent: Agent) -> None:
    """A TLS handshake with a port that speaks plain HTTP."""
    environ = {"CONSUL_HTTP_ADDR": f"https://{shared_agent.host}:{shared_agent.port}"}
    done = command("leader", "--key", "a", environ=environ)
    assert done.returncode == UNREACHABLE and one_line(done.stderr)


@pytest.mark.parametrize("key", ["", "/a", "a//b", "..", "a/../b", "a\udcff", "ä", "a b", "a?x=y"])
def test_an_invalid_key_is_a_usage_error(key: str) -> None:
    arguments = [sys.executable, "-m", "supervisor", "leader", "--key", key]
    done = subprocess.run(arguments, capture_output=True, timeout=PATIENCE_S)
    assert done.returncode == 2 and b"Traceback" not in done.stderr


@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
def test_closed_standard_streams_are_no_bug(closed: str) -> None:
    done = subprocess.run(
        ["sh", "-c", f'"$0" -m supervisor schema {closed}', sys.executable],
        capture_output=True,
        timeout=PATIENCE_S,
    )
    assert done.returncode == 0 and b"Traceback" not in done.stderr


@pytest.mark.parametrize(
    "arguments", ["schema", "help", "help members", "members -h", "--version", "version"]
)
def test_output_that_cannot_be_written_is_reported_in_one_line(arguments: str) -> None:
    command = f'"$0" -m supervisor {arguments} >/dev/full'
    done = captured(["sh", "-c", command, sys.executable], env=ENVIRON, timeout=PATIENCE_S)
    assert done.returncode == 1
    assert done.stderr.splitlines() == ["consul-supervisor: cannot write the answer: No space left on device"]
