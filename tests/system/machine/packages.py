"""The Debian package as the machines install it: built from this tree, with apt and without a network."""

import os
import sys
from pathlib import Path

from supervisor import __version__
from tests.support.captured import captured
from tests.system.machine.machine import Machine
from tests.system.packaging.builds import copy_tree

BUILD_S = 120.0
FOLDER = "srv"


def make_package(folder: Path, version: str = __version__) -> Path:
    """Build the package of a copy of this tree in a new folder by this version, and return its file."""
    tree = copy_tree(folder)
    environ = {**os.environ, "PYTHON": sys.executable, "SETUPTOOLS_SCM_PRETEND_VERSION": version}
    ran = captured([str(tree / "debian" / "build.sh")], timeout=BUILD_S, env=environ)
    assert ran.returncode == 0, ran.stderr
    return tree / ran.stdout.strip()


def give_package(machine: Machine, package: Path) -> None:
    """Put the package, and no other version of it, where the machine's commands find it."""
    folder = machine.root / FOLDER
    for former in folder.glob("consul-supervisor_*.deb"):
        former.unlink()
    (folder / package.name).write_bytes(package.read_bytes())
