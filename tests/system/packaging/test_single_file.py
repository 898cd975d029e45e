"""The single file, on each Python that is found here, with an empty environment and an empty home."""

import json
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

import supervisor
from release import WHEEL, single_file
from tests.support.captured import captured
from tests.support.consul import Agent
from tests.support.supervisor import PATIENCE_S, until
from tests.system.packaging.builds import ROOT, run
from tests.system.packaging.conftest import Built
from tests.system.packaging.interpreters import found

EXAMPLE = ROOT / "examples" / "configs" / "minimal.yaml"
DRILL_S = 600.0  # half a minute on an idle machine
NOTED = """\
consul: {{address: "{url}"}}
elections:
  app:
    key: {key}
    session: {{ttl: 60s, lock_delay: 60s}}
    on_acquire: [{{shell: echo {word} >>noted}}]
    on_lose: [{{shell: echo lost >>noted}}]
"""


@pytest.fixture(scope="module")
def file(built: Built, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make(built, tmp_path_factory.mktemp("single"))


def make(built: Built, folder: Path) -> Path:
    shutil.copy(built.wheel, folder / WHEEL)
    single_file.main(folder)
    return folder / single_file.NAME


class Carried:
    """The file on a machine that has nothing else of ours, and one Python.

    home: where commands run, and their only folder.
    temporary: their TMPDIR, which is short because drill makes sockets there.
    """

    def __init__(self, file: Path, python: str, folder: Path, temporary: Path) -> None:
        self.home = folder / "home"
        self.temporary = temporary
        self.home.mkdir()
        self.file = folder / "consul-supervisor"
        shutil.copy(file, self.file)
        (folder / "bin").mkdir()
        (folder / "bin" / "python3").symlink_to(python)
        path = f"{folder / 'bin'}:/usr/sbin:/usr/bin:/sbin:/bin"
        places = {"STATE_DIRECTORY": str(self.home / "state"), "RUNTIME_DIRECTORY": str(self.home)}
        self.environ = {"PATH": path, "HOME": str(self.home), "TMPDIR": str(self.temporary), **places}

    def run(self, *arguments: str, **environ: str) -> subprocess.CompletedProcess[str]:
        return captured(
            [str(self.file), *arguments], cwd=self.home, env=self.environ | environ, timeout=PATIENCE_S
        )

    def upgrade(self) -> None:
        """Put another file into the place of this one, in which everything stands at another offset."""
        newer = self.file.with_name("newer")
        newer.write_bytes(b"#!/usr/bin/env python3\n" * 9 + self.file.read_bytes())
        newer.chmod(0o755)
        newer.rename(self.file)

    @contextmanager
    def start(self, *arguments: str) -> Iterator[subprocess.Popen[bytes]]:
        """Start a command, whose output goes into a file of its name, and kill it in the end."""
        log = self.home.parent / f"{arguments[0]}.log"
        argv = ["setpriv", "--pdeathsig", "KILL", str(self.file), *arguments]
        with log.open("ab") as output:
            process = subprocess.Popen(argv, stdout=output, stderr=output, cwd=self.home, env=self.environ)
        try:
            yield process
        finally:
            process.kill()
            process.wait()

    def log(self, command: str) -> str:
        return (self.home.parent / f"{command}.log").read_text()

    def holds(self) -> bool:
        return self.run("holds", "app", "--socket", "control.sock").returncode == 0

    def noted(self) -> list[str]:
        file = self.home / "noted"
        return file.read_text().split() if file.exists() else []


@pytest.fixture
def temporary() -> Iterator[Path]:
    with TemporaryDirectory() as folder:
        yield Path(folder)


@pytest.fixture(params=found())
def carried(request: pytest.FixtureRequest, file: Path, tmp_path: Path, temporary: Path) -> Carried:
    return Carried(file, found()[request.param], tmp_path, temporary)


def test_every_kind_of_command_runs_and_leaves_nothing(
    carried: Carried, shared_agent: Agent, unique: str
) -> None:
    with carried.start("drill", str(EXAMPLE)) as drill:
        assert carried.run("--version").stdout == f"consul-supervisor {supervisor.__version__}\n"
        assert json.loads(carried.run("schema").stdout)
        checked = carried.run("check", "--json", str(EXAMPLE))
        assert checked.returncode == 0 and json.loads(checked.stdout), checked.stderr
        locked = ["lock", unique, "--", "sh", "-c", "echo locked; exit 3"]
        ran = carried.run(*locked, CONSUL_HTTP_ADDR=shared_agent.url)
        assert (ran.returncode, ran.stdout) == (3, "locked\n"), ran.stderr
        shown = carried.run("demo")
        assert shown.returncode == 0, shown.stdout + shown.stderr
        assert drill.wait(DRILL_S) in (0, 1), carried.log("drill")  # 1: a busy machine broke a promise
        assert " promises: " in carried.log("drill"), carried.log("drill")
    assert [*carried.home.iterdir(), *carried.temporary.iterdir()] == []


def test_a_daemon_adopts_after_a_kill_and_reads_its_configuration_after_its_file_was_replaced(
    carried: Carried, shared_agent: Agent, unique: str
) -> None:
    config = carried.home / "c.yaml"
    config.write_text(NOTED.format(url=shared_agent.url, key=unique, word="acquired"))
    with carried.start("run", "c.yaml"):
        until(lambda: carried.holds(), "it holds")
    assert list(carried.temporary.iterdir()) == []
    with carried.start("run", "c.yaml") as process:
        until(lambda: carried.holds(), "it holds again")
        assert carried.noted() == ["acquired"]
        carried.upgrade()
        config.write_text(NOTED.format(url=shared_agent.url, key=unique, word="changed"))
        process.send_signal(signal.SIGHUP)
        until(lambda: '"event": "reloaded"' in carried.log("run"), f"it has reloaded: {carried.log('run')}")
        process.send_signal(signal.SIGTERM)
        assert process.wait(PATIENCE_S) == 0, carried.log("run")
    assert carried.noted() == ["acquired", "lost"]
    assert "Traceback" not in carried.log("run")


def test_another_package_of_our_name_in_the_system_does_not_matter(
    file: Path, shared_agent: Agent, unique: str, tmp_path: Path, temporary: Path
) -> None:
    """Debian's package supervisor is another program, and its Python package has the name of ours."""
    run(sys.executable, "-m", "venv", "--without-pip", str(tmp_path / "venv"), cwd=tmp_path)
    (packages,) = (tmp_path / "venv").glob("lib/python3*/site-packages")
    (packages / "supervisor").mkdir()
    (packages / "supervisor" / "__init__.py").write_text("raise SystemExit('the wrong one')\n")
    carried = Carried(file, sys.executable, tmp_path, temporary)
    carried.environ["PATH"] = f"{tmp_path / 'venv' / 'bin'}:{carried.environ['PATH']}"
    secret = carried.home / "token"
    secret.write_text("anonymous")
    secret.chmod(0o644)
    text = NOTED.format(url=shared_agent.url, key=unique, word="acquired")
    (carried.home / "c.yaml").write_text(text.replace("consul: {", f"consul: {{token_file: {secret}, "))
    with carried.start("run", "c.yaml"):
        warned = "everybody can read this secret"
        until(
            lambda: warned in carried.log("run"), f"the process that looks has looked: {carried.log('run')}"
        )


def test_an_older_python_is_named(file: Path, tmp_path: Path) -> None:
    older = (
        f"import runpy, sys; sys.version_info = (3, 9, 2); runpy.run_path({str(file)!r}, run_name='__main__')"
    )
    ran = captured([sys.executable, "-c", older], timeout=PATIENCE_S)
    assert (ran.returncode, ran.stdout) == (1, "")
    assert ran.stderr == "consul-supervisor needs Python 3.11 or later, and this is 3.9\n"


def test_equal_wheels_give_equal_bytes(file: Path, built: Built, tmp_path: Path) -> None:
    assert make(built, tmp_path).read_bytes() == file.read_bytes()
