"""No secret gets out, in good circumstances and bad, and the log of a whole life is well formed.

Unmistakable markers stand in each place that may hold a secret. The output and the files of the program are
then searched for them, as they are and as base64.
"""

import base64
import os
import pwd
import shutil
import signal
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pytest
import trustme
import yaml

from supervisor.config import ConfigError
from tests.consul.conftest import MakeScene
from tests.consul.elections.crash import accepted_file, crash
from tests.consul.elections.scene import Scene
from tests.consul.web.reader import Reader
from tests.support.configured import loaded
from tests.support.guarded import Guarded, write
from tests.support.programs import BUGGY_DAEMON, run_program
from tests.support.supervisor import ENVIRON, Supervisor, command, name_of, until

HEADER, QUERY, PATH, BODY = "m4rk-header-9a51", "m4rk-query-77d0", "m4rk-path-51aa", "m4rk-body-0c2e"
SIGNING = "whsec_" + base64.b64encode(b"m4rk-signing-of-this-test").decode()
HOOK_ENV = "m4rk-hook-env-31f7"
VARIABLE = "m4rk-variable-8d8d"
BUG = 70
OURS = pwd.getpwuid(os.geteuid()).pw_name
STATUS = ("/v1/status", "/metrics", "/", "/healthz", "/leader/NAME", "/holder/NAME", "/nothing")


def of_process(pid: int, what: str) -> str:
    """Return the content of this file of /proc; blank for a process that has ended."""
    try:
        return Path(f"/proc/{pid}/{what}").read_bytes().decode(errors="replace")
    except OSError:
        return ""


def asleep(scene: Scene) -> bool:
    """Return whether the process sleeps, because it shows no environment while it becomes another program."""
    pids = [process.pid for process in scene.processes()]
    return any(of_process(pid, "comm") == "sleep\n" and of_process(pid, "environ") for pid in pids)


def secret_in(text: str, secrets: Iterable[str]) -> list[str]:
    return [
        secret
        for secret in secrets
        if secret in text or base64.b64encode(secret.encode()).decode().rstrip("=") in text
    ]


@dataclass
class Told:
    """All output and all files, by their origin."""

    secrets: tuple[str, ...]
    texts: dict[str, str] = field(default_factory=dict)

    def add(self, where: str, text: str) -> None:
        self.texts[where] = self.texts.get(where, "") + text

    def add_processes(self, scene: Scene, node: Supervisor) -> None:
        """Add the command lines of the supervisor and its children, and the environments of the children."""
        self.add("command line of the supervisor", of_process(node.pid, "cmdline"))
        for process in scene.processes():
            if process.pid != node.pid:
                name = name_of(process)
                self.add(f"command line of {name}", of_process(process.pid, "cmdline"))
                self.add(f"environment of {name}", of_process(process.pid, "environ"))

    def add_status(self, node: Supervisor, name: str) -> None:
        for path in STATUS:
            answer = Reader(node).ask_socket(path.replace("NAME", name))
            self.add(f"answer to {path}", f"{answer.headers} {answer.body}")

    def add_commands(self, node: Supervisor, environ: Mapping[str, str]) -> None:
        """Add the output of the commands about this configuration and this daemon."""
        config = str(node.config_path)
        for arguments in (
            ["check", config],
            ["check", config, "--json"],
            ["check", config, "--connect"],
            ["leader", "app", "--config", config],
            ["status", "--config", config],
            ["status", "--config", config, "--json"],
            ["pause", "none", "--config", config],
            ["recover", "--config", config, "none"],
        ):
            done = command(*arguments, environ=environ)
            assert "Traceback" not in done.stderr
            self.add(f"output of {arguments[0]}", done.stdout + done.stderr)

    def assert_clean(self) -> None:
        for where, text in self.texts.items():
            found = secret_in(text, self.secrets)
            assert not found, f"{found} in the {where}"


def journals(node: Supervisor) -> dict[str, str]:
    """Return the content of each record, by its file."""
    return {file.name: file.read_text(errors="replace") for file in node.records.iterdir()}


def recorded_programs(folder: Path) -> str:
    """Return a PATH on which getent and setpriv record their command lines, each in a file of its own."""
    folder.mkdir()
    for name in ("getent", "setpriv"):
        program = folder / name
        told = f"cat /proc/$$/cmdline /proc/$$/environ >{folder}/$$.started"
        program.write_text(f'#!/bin/sh\n{told}\nexec {shutil.which(name)} "$@"\n')
        program.chmod(0o755)
    return f"{folder}:{ENVIRON['PATH']}"


def started_programs(folder: Path) -> str:
    """Return these records, without that of the setpriv by which the test itself starts the supervisor."""
    texts = [file.read_text() for file in folder.glob("*.started")]
    return "".join(text for text in texts if "\0supervisor\0run\0" not in text)


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Guarded]:
    with Guarded(tmp_path_factory.mktemp("guarded") / "consul") as agent:
        yield agent


@pytest.fixture
def scene(guarded: Guarded, make_scene: MakeScene[Scene]) -> Iterator[Scene]:
    """Return supervisors on an agent that denies by default, so that the token is a real one."""
    with make_scene(guarded) as made:
        yield made


def webhook(url: str, folder: Path) -> dict[str, object]:
    """Return a webhook with a secret in each place that may have one; its address has no listener."""
    signing, key, cert = folder / "hook.key", folder / "tls.key", folder / "tls.pem"
    signing.write_text(SIGNING)
    issued = trustme.CA().issue_cert("client.example")
    key.write_bytes(issued.private_key_pem.bytes())
    cert.write_bytes(issued.cert_chain_pems[0].bytes())
    return {
        "webhook": f"{url}/{PATH}?key={QUERY}",
        "headers": {"Authorization": f"Bearer {HEADER}", "X-From": "${MY_SECRET}"},
        "body": BODY,
        "secret_file": str(signing),
        "tls": {"cert_file": str(cert), "key_file": str(key)} if url.startswith("https") else {},
    }


PLACES = ["token", "token_file", "CONSUL_HTTP_TOKEN", "CONSUL_HTTP_TOKEN_FILE", "filled in"]


@pytest.mark.long
@pytest.mark.parametrize("place", PLACES)
def test_a_whole_life_reveals_no_secret(scene: Scene, guarded: Guarded, tmp_path: Path, place: str) -> None:
    """The node leads; hooks print their environment, fail, and cannot be sent; the token is refused."""
    made = guarded.token_of(write(scene.key) + guarded.sessions_rule())
    file, programs = tmp_path / "token", tmp_path / "bin"
    file.write_text(made.secret)
    consul: dict[str, object] = {"token": made.secret, "token_file": str(file), "filled in": "${MY_TOKEN}"}
    settings = {"token" if place == "filled in" else place: consul[place]} if place in consul else {}
    environ = {
        "CONSUL_HTTP_TOKEN": made.secret if place == "CONSUL_HTTP_TOKEN" else "",
        "CONSUL_HTTP_TOKEN_FILE": str(file) if place == "CONSUL_HTTP_TOKEN_FILE" else "",
        "MY_TOKEN": made.secret if place == "filled in" else "",
        "MY_SECRET": VARIABLE,
        "NOTIFY_SOCKET": "/none",
        "WATCHDOG_USEC": "1",
        "PATH": recorded_programs(programs),
    }
    environ = {name: value for name, value in environ.items() if value}
    plain, secure = tmp_path / "plain", tmp_path / "secure"
    plain.mkdir()
    secure.mkdir()
    private = {"shell": "exit 1", "env": {"PRIVATE": HOOK_ENV}, "timeout": "900ms", "kill_after": "100ms"}
    a = scene.node(
        "a",
        consul=settings,
        environ=environ,
        on_acquire=[scene.hook("a", "acquire", "env; sleep 60", timeout="4s", user=OURS)],
        on_lose=[scene.hook("a", "lose", "env; exit 3"), private],
        on_lose_failure=[scene.hook("a", "lose-failure", "env")],
        on_change=[
            webhook("http://127.0.0.1:1", plain),
            webhook("https://127.0.0.1:1", secure),
            webhook("http://localhost:1", plain),
        ],
        session={"lock_delay": "20s"},
        rejoin_delay="60s",
    )
    key = "".join((secure / "tls.key").read_text().splitlines()[1:-1])
    secrets = (made.secret, HEADER, QUERY, PATH, BODY, SIGNING, SIGNING.removeprefix("whsec_"), VARIABLE, key)
    told = Told(secrets)
    for number in range(3):
        a.wait_line("hook-failed", hook=f"on_change[{number}]")
    a.wait_line("hook-output", hook="on_acquire[0]")
    until(lambda: asleep(scene), "the hook sleeps")
    told.add_processes(scene, a)
    told.add_status(a, scene.name)
    scene.wait(node="a", event="lose-failure", stage="end")
    if place in ("token_file", "CONSUL_HTTP_TOKEN_FILE"):
        file.write_text(f"{made.secret} {made.secret}")
        ask_anew(scene)
        a.wait_line("token-file")
    guarded.forget(made)
    ask_anew(scene)
    a.wait_line("consul-denied")
    told.add_status(a, scene.name)
    told.add_commands(a, environ)
    for name, text in journals(a).items():
        of_file = name == "accepted.json" and place in ("token", "filled in")
        found = secret_in(text, (SIGNING, key) if of_file else (made.secret, SIGNING, key))
        assert not found, f"{found} in the record {name}"
    scene.excuse("a")
    a.signal(signal.SIGTERM)
    a.wait()
    told.add("log", a.log_text)
    told.add("programs that were started", started_programs(programs))
    assert "getent\0ahosts" in told.texts["programs that were started"]
    assert '"last_hook"' in told.texts["answer to /v1/status"]
    assert "environment of sleep" in told.texts and "on_acquire[0]" in told.texts["log"]
    assert "MY_SECRET" not in told.texts["environment of sleep"]
    assert "NOTIFY_SOCKET" not in told.texts["environment of sleep"]
    assert "WATCHDOG" not in told.texts["environment of sleep"]
    told.assert_clean()
    assert not secret_in(told.texts["environment of sleep"] + told.texts["log"], [HOOK_ENV])


def ask_anew(scene: Scene) -> None:
    """End every watch of the key, so that the next request need not wait for half a minute."""
    scene.agent.kv_put(scene.key, os.urandom(4).hex().encode())


@pytest.mark.long
def test_the_last_accepted_configuration_takes_the_token_from_the_environment(
    scene: Scene, guarded: Guarded
) -> None:
    secret = guarded.token_of(write(scene.key) + guarded.sessions_rule()).secret
    scene.lasting()
    a = scene.leader("a", environ={"CONSUL_HTTP_TOKEN": secret})
    until(accepted_file(a).exists, "the configuration is kept")
    assert not secret_in(accepted_file(a).read_text(), [secret])
    crash(scene, "a")
    a.config_path.write_text("elections: [")
    a.start()
    until(lambda: len(a.lines("role", role="holding")) == 2, "it holds again")


MARK = "m4rk-bad-file-5d51"
MARKED = {"MARKED": f"{MARK} {MARK}"}
BAD = {
    "a token with blanks": f'consul: {{token: "{MARK} {MARK}"}}',
    "a token that is a list": f"consul: {{token: [{MARK}]}}",
    "a token that is a mapping": f"consul: {{token: {{a: {MARK}}}}}",
    "a token twice": f"consul:\n  token: {MARK}\n  token: {MARK}",
    "a token and a file": f"consul: {{token: {MARK}, token_file: /x}}",
    "a key misspelt": f"consul: {{tokn: {MARK}}}",
    "consul itself": f"consul: {MARK}",
    "an address with a password": f"consul: {{address: 'https://user:{MARK}@127.0.0.1'}}",
    "an address with a path": f"consul: {{address: 'https://127.0.0.1/{MARK}'}}",
    "no YAML after it": f'consul: {{token: "{MARK}',
    "a tab before it": f"consul:\n\ttoken: {MARK}",
    "a tag on it": f"consul: {{token: !x {MARK}}}",
    "an anchor on it": f"consul: {{token: &a {MARK}}}",
    "a variable with blanks": "consul: {token: '${MARKED}'}",
    "a variable in a key": "elections: {app: {key: '${MARKED}'}}",
    "a variable in an address": "consul: {address: '${MARKED}'}",
    "a password in a URL": f"elections: {{app: {{on_change: [{{webhook: 'https://u:{MARK}@h/'}}]}}}}",
    "another scheme": f"elections: {{app: {{on_change: [{{webhook: 'ftp://{MARK}/'}}]}}}}",
    "a URL with a port that is none": f"elections: {{app: {{on_change: [{{webhook: 'https://h:{MARK}/'}}]}}}}",
    "a header with a line's end": (
        f'elections: {{app: {{on_change: [{{webhook: "https://h/", headers: {{A: "{MARK}\\n"}}}}]}}}}'
    ),
    "headers as a list": f"elections: {{app: {{on_change: [{{webhook: 'https://h/', headers: [{MARK}]}}]}}}}",
    "headers as text": f"elections: {{app: {{on_change: [{{webhook: 'https://h/', headers: {MARK}}}]}}}}",
    "a body that is no text": (
        "elections: {app: {on_change: [{webhook: 'https://h/', headers: {Content-Type: text/plain}, "
        f"body: [{MARK}]}}]}}}}"
    ),
    "a body that is no JSON with its facts": (
        "elections: {app: {on_change: [{webhook: 'https://h/', "
        f"body: '{MARK} ${{CONSUL_SUPERVISOR_NAME}}'}}]}}}}"
    ),
    "a URL that is no path with its facts": (
        f"elections: {{app: {{on_change: [{{webhook: 'https://{MARK}${{CONSUL_SUPERVISOR_NAME}}/'}}]}}}}"
    ),
    "a body of a command": f"elections: {{app: {{on_change: [{{shell: ':', body: {MARK}}}]}}}}",
    "an environment as a list": f"elections: {{app: {{on_change: [{{shell: ':', env: [{MARK}]}}]}}}}",
    "an environment of lists": f"elections: {{app: {{on_change: [{{shell: ':', env: {{A: [{MARK}]}}}}]}}}}",
    "an environment with NUL": (
        f'elections: {{app: {{on_change: [{{shell: ":", env: {{A: "{MARK}\\0"}}}}]}}}}'
    ),
}


@pytest.mark.parametrize("fault", BAD)
def test_a_bad_file_is_refused_without_showing_its_secrets(tmp_path: Path, fault: str) -> None:
    text = BAD[fault]
    more = "" if "elections:" in text else "\nelections: {app: {}}"
    with pytest.raises(ConfigError) as refused:
        loaded(tmp_path, f"{text}{more}\nstate_dir: {tmp_path}/state\n", MARKED, "here")
    assert not secret_in(f"{refused.value} {refused.value!r}", [MARK])


@pytest.mark.long
def test_a_bad_token_in_the_environment_is_not_shown(tmp_path: Path) -> None:
    environ = {"CONSUL_HTTP_TOKEN": f"{MARK} {MARK}"}
    done = command("leader", "--key", "k", environ=environ)
    assert done.returncode == 78 and MARK not in done.stdout + done.stderr
    environ = {"CONSUL_HTTP_ADDR": f"https://user:{MARK}@127.0.0.1"}
    done = command("leader", "--key", "k", environ=environ)
    assert done.returncode == 78 and MARK not in done.stdout + done.stderr


def test_the_trace_of_a_bug_shows_no_secret(tmp_path: Path) -> None:
    """A trace may hold the settings themselves."""
    signing = tmp_path / "hook.key"
    signing.write_text(SIGNING)
    hook = {
        "webhook": f"http://127.0.0.1:1/{PATH}?key={QUERY}",
        "headers": {"Authorization": HEADER},
        "body": BODY,
        "secret_file": str(signing),
    }
    own = {"shell": ":", "env": {"PRIVATE": HOOK_ENV}}
    config = {
        "consul": {"address": "http://127.0.0.1:1", "token": MARK},
        "state_dir": str(tmp_path / "state"),
        "control_socket": str(tmp_path / "control.sock"),
        "elections": {"app": {"on_change": [hook], "on_lose": [own]}},
    }
    file = tmp_path / "c.yaml"
    file.write_text(yaml.safe_dump(config))
    words = "f'cannot use {config} {daemon.__dict__}'"
    done = run_program(BUGGY_DAEMON.format(words=words), str(file))
    assert done.returncode == BUG and "ValueError: cannot use Config(" in done.stderr
    assert not secret_in(done.stderr, (MARK, PATH, QUERY, HEADER, BODY, SIGNING, HOOK_ENV)), done.stderr
