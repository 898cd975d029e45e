"""Wheel and sdist as a user installs them: with pip, in a fresh venv, on each Python that is found here.

The package's dependencies come from wherever pip gets packages on this machine.
"""

import json
import re
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import supervisor
from docs import completion, man
from tests.support.supervisor import PATIENCE_S, until
from tests.system.packaging.builds import ROOT, SCHEMA, clean_environ, run
from tests.system.packaging.conftest import Built
from tests.system.packaging.interpreters import RUNNING, found

EXAMPLE = ROOT / "examples" / "configs" / "election.yaml"
NOTED = """\
log: {format: json}
consul: {address: "%s"}
elections:
  demo:
    on_acquire: [{shell: echo acquired >>noted}]
    on_lose: [{shell: echo lost >>noted}]
"""
# A wheel of the sdist is the very same, so one Python shows that pip makes it.
KINDS = [*((version, "wheel") for version in found()), (RUNNING, "sdist")]
READ_SCHEMA = (
    "import importlib.resources, sys;"
    "sys.stdout.buffer.write(importlib.resources.files('supervisor').joinpath('schemas/config.schema.json')"
    ".read_bytes())"
)


class Installed:
    """A fresh venv into which pip has installed one file; commands run in an empty folder beside it."""

    def __init__(self, python: str, folder: Path, file: Path) -> None:
        self.folder = folder / "empty"
        self.folder.mkdir()
        self.bin = folder / "venv" / "bin"
        run(python, "-m", "venv", str(self.bin.parent), cwd=self.folder)
        self.python("-m", "pip", "install", "--disable-pip-version-check", str(file))

    def python(self, *arguments: str) -> str:
        return run(str(self.bin / "python"), *arguments, cwd=self.folder)

    def command(self, *arguments: str) -> str:
        return run(str(self.bin / "consul-supervisor"), *arguments, cwd=self.folder)

    @contextmanager
    def running(self, *arguments: str) -> Iterator[subprocess.Popen[str]]:
        """Run the command until TERM ends it with 0; a warning of Python makes the exit code another one."""
        places = {"RUNTIME_DIRECTORY": str(self.folder), "STATE_DIRECTORY": str(self.folder / "state")}
        argv = ["setpriv", "--pdeathsig", "KILL", str(self.bin / "consul-supervisor"), *arguments]
        environ = {**clean_environ(), **places, "PYTHONWARNINGS": "error"}
        with (
            (self.folder / f"{arguments[0]}.log").open("w") as log,
            subprocess.Popen(
                argv, stdout=subprocess.PIPE, stderr=log, text=True, cwd=self.folder, env=environ
            ) as process,
        ):
            try:
                yield process
                process.send_signal(signal.SIGTERM)
                assert process.wait(PATIENCE_S) == 0, self.log(arguments[0])
            finally:
                process.kill()

    def log(self, command: str) -> str:
        return (self.folder / f"{command}.log").read_text()

    def holds(self) -> bool:
        asked = [str(self.bin / "consul-supervisor"), "holds", "demo", "--socket", "control.sock"]
        return subprocess.run(asked, check=False, cwd=self.folder, stderr=subprocess.DEVNULL).returncode == 0


@pytest.fixture(scope="module", params=KINDS, ids="-".join)
def installed(
    request: pytest.FixtureRequest, built: Built, tmp_path_factory: pytest.TempPathFactory
) -> Installed:
    version, kind = request.param
    return Installed(found()[version], tmp_path_factory.mktemp(f"{version}-{kind}"), getattr(built, kind))


def test_an_installed_package_is_whole_and_leads(installed: Installed) -> None:
    """Its modules and its schema are the installed ones, not those of this tree."""
    assert "No broken requirements" in installed.python("-m", "pip", "check")
    place = installed.python("-c", "import supervisor; print(supervisor.__file__)")
    assert Path(place).is_relative_to(installed.bin.parent)
    assert installed.command("--version").split()[-1] == supervisor.__version__
    schema = (ROOT / SCHEMA).read_text()
    assert installed.python("-c", READ_SCHEMA) == schema
    assert installed.command("schema").strip() == schema.strip()
    assert installed.python("-m", "supervisor", "schema") == installed.command("schema")
    assert json.loads(installed.command("check", "--json", str(EXAMPLE)))
    share = installed.bin.parent / "share"
    for place, text in {**man.pages(), **completion.scripts()}.items():
        assert (share / place).read_text() == text
    for file in (ROOT / "systemd").iterdir():
        assert (share / "consul-supervisor" / "systemd" / file.name).read_text() == file.read_text()
    takes_part(installed)


def takes_part(installed: Installed) -> None:
    """Assert that it acquires, holds and loses in order, with the embedded agent as Consul."""
    with installed.running("dev-agent", "--port", "0") as agent:
        assert agent.stdout is not None
        found_in = (re.search(r"http://\S+", line) for line in agent.stdout)
        address = next(found[0] for found in found_in if found)
        (installed.folder / "demo.yaml").write_text(NOTED % address)
        with installed.running("run", "demo.yaml"):
            until(installed.holds, "it holds")
        assert (installed.folder / "noted").read_text().split() == ["acquired", "lost"]
    assert "Traceback" not in installed.log("run") + installed.log("dev-agent")
