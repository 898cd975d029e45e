"""The product works with exactly the lowest versions that pyproject.toml allows.

A venv has these versions and the tools of the tests. It runs the tests of whatever uses a dependency, and
among them are daemons on a real Consul.
"""

import re
import tomllib
from pathlib import Path

import pytest

from tests.system.packaging.builds import ROOT, run
from tests.system.packaging.interpreters import found, promised

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
TOOLS = ("pytest", "pytest-xdist", "hypothesis", "trustme", "psutil")
TESTS_S = 600.0  # they take a minute on a machine that does nothing else
TESTED = (
    "tests/unit/config",  # pyyaml, jsonschema
    "tests/unit/transport/test_exchange.py",  # h11, requests
    "tests/unit/transport/test_tls.py",
    "tests/unit/telemetry",  # structlog, prometheus-client
    "tests/processes/hooks/test_webhook.py",
    "tests/consul/elections/test_handover.py",
    "tests/consul/elections/test_reload.py",
    "tests/consul/elections/test_tls.py",
    "tests/consul/web/test_status.py",
)


def lowest() -> list[str]:
    """Return each dependency of the product with its lowest version."""
    pins = [requirement.replace(">=", "==") for requirement in PROJECT["dependencies"]]
    assert pins and all(re.fullmatch(r"[a-z0-9-]+==[0-9.]+", pin) for pin in pins), pins
    return pins


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the Python of a venv with the lowest versions, of the lowest Python that is here."""
    folder = tmp_path_factory.mktemp("lowest")
    tools = [
        wanted for wanted in PROJECT["optional-dependencies"]["dev"] if re.split("[>=]", wanted)[0] in TOOLS
    ]
    assert len(tools) == len(TOOLS)
    base = next(found()[version] for version in promised() if version in found())
    run(base, "-m", "venv", str(folder / "venv"), cwd=folder)
    made = folder / "venv" / "bin" / "python"
    run(str(made), "-m", "pip", "install", "--disable-pip-version-check", *lowest(), *tools, cwd=folder)
    return made


def test_the_venv_has_the_lowest_versions(python: Path) -> None:
    shown = run(str(python), "-m", "pip", "freeze", "--disable-pip-version-check", cwd=ROOT)
    installed = dict(line.split("==") for line in shown.lower().replace("_", "-").splitlines())
    for pin in lowest():
        name, version = pin.split("==")
        assert re.fullmatch(rf"{re.escape(version)}(\.0)*", installed[name]), (pin, installed[name])
    assert "consul-supervisor" not in installed


def test_the_tests_pass_with_the_lowest_versions(python: Path) -> None:
    """The tests import the product from this tree, because they run in it."""
    argv = ("-m", "pytest", "-q", "-n", "2", "-p", "no:cacheprovider", "-m", "not long", *TESTED)
    environ = {"PYTHONDONTWRITEBYTECODE": "1"}
    assert " passed" in run(str(python), *argv, cwd=ROOT, environ=environ, within_s=TESTS_S)
