"""The Pythons of this machine on which the package promises to run."""

import functools
import os
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

from tests.support.captured import captured
from tests.system.packaging.builds import ROOT, clean_environ

ASKED = "import ensurepip, sys, venv; print('%d.%d' % sys.version_info[:2])"
RUNNING = f"{sys.version_info.major}.{sys.version_info.minor}"


@functools.cache
def promised() -> tuple[str, ...]:
    """Return the versions that pyproject.toml names."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    last = [line.rpartition(" :: ")[2] for line in project["classifiers"] if "Python ::" in line]
    return tuple(version for version in last if version.count("."))


@functools.cache
def found() -> dict[str, str]:
    """Return the promised versions that are here and can make a venv, and the running one in any case."""
    pythons = {RUNNING: sys.executable}
    for version in promised():
        works = (str(path) for path in _candidates(version) if _is(version, path))
        if version != RUNNING and (first := next(works, "")):
            pythons[version] = first
    return pythons


def _candidates(version: str) -> Iterator[Path]:
    """Yield where that version may be: on PATH and in pyenv's own folder.

    Some of those on PATH are only stand-ins that print where the real Python is.
    """
    for folder in os.get_exec_path():
        yield Path(folder, f"python{version}")
    pyenv = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv")
    yield from sorted(pyenv.glob(f"versions/{version}.*/bin/python"))


def _is(version: str, path: Path) -> bool:
    if not os.access(path, os.X_OK):
        return False
    ran = captured([str(path), "-c", ASKED], env=clean_environ())
    return ran.returncode == 0 and ran.stdout.strip() == version


if __name__ == "__main__":
    print(*(python for version, python in found().items() if version != RUNNING), sep="\n")
