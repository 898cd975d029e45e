"""The requirements with hashes: pip installs the tested versions by them, and no other file of our name."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import supervisor
from release import SDIST, WHEEL, requirements, tested
from tests.support.captured import captured
from tests.system.packaging.builds import COMMAND_S, clean_environ, run
from tests.system.packaging.conftest import Built
from tests.system.packaging.interpreters import found


@pytest.fixture(scope="module")
def folder(built: Built, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with wheel, sdist and requirements."""
    made = tmp_path_factory.mktemp("release")
    shutil.copy(built.wheel, made / WHEEL)
    shutil.copy(built.sdist, made / SDIST)
    requirements.main(made)
    return made


def install(folder: Path, python: str, venv: Path) -> subprocess.CompletedProcess[str]:
    """Install into a new venv by the command at the head of the requirements."""
    run(python, "-m", "venv", str(venv), cwd=folder)
    command = (folder / requirements.NAME).read_text().splitlines()[1].removeprefix("# pip ").split()
    return captured([str(venv / "bin" / "pip"), *command], cwd=folder, env=clean_environ(), timeout=COMMAND_S)


@pytest.mark.parametrize("version", found())
def test_pip_installs_the_tested_versions_on_each_python(folder: Path, version: str, tmp_path: Path) -> None:
    installed = install(folder, found()[version], tmp_path / "venv")
    assert installed.returncode == 0, installed.stderr
    assert run(str(tmp_path / "venv" / "bin" / "consul-supervisor"), "--version", cwd=tmp_path).endswith(
        f"{supervisor.__version__}\n"
    )
    frozen = run(str(tmp_path / "venv" / "bin" / "pip"), "freeze", cwd=tmp_path).splitlines()
    assert len(frozen) > 6
    assert {line for line in frozen if not line.startswith("consul-supervisor")} <= set(
        tested.constraints().splitlines()
    )


def test_pip_refuses_another_file_of_our_name(folder: Path, tmp_path: Path) -> None:
    other = tmp_path / "release"
    shutil.copytree(folder, other)
    with (other / WHEEL).open("ab") as wheel:
        wheel.write(b"\n")
    (other / SDIST).unlink()
    refused = install(other, sys.executable, tmp_path / "venv")
    assert refused.returncode != 0 and "DO NOT MATCH THE HASHES" in refused.stderr


def test_the_requirements_name_no_package_index_and_no_place(folder: Path) -> None:
    text = (folder / requirements.NAME).read_text()
    lines = [line.strip(" \\") for line in text.splitlines() if not line.startswith("#")]
    assert all(re.fullmatch(r"[a-z0-9.-]+==\d[a-z0-9.+]*|--hash=sha256:[0-9a-f]{64}", line) for line in lines)


def test_a_later_python_than_the_oldest_cannot_write_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(requirements, "OLDEST", (3, 10))
    with pytest.raises(SystemExit, match="this is not Python 3.10"):
        requirements.main(tmp_path)
    assert list(tmp_path.iterdir()) == []
