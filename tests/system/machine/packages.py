"""The Debian package as the machines install it: built from this tree, with apt and without a network."""

import os
import re
import sys
from pathlib import Path

from tests.support.captured import captured
from tests.system.machine.machine import Machine
from tests.system.packaging.builds import copy_tree

BUILD_S = 120.0
FOLDER = "srv"


def make_package(folder: Path, version: str = "") -> Path:
    """Build the package from a copy of this tree in a new folder, and return its file.

    version: the version in the place of this tree's. Blank: this tree's.
    """
    tree = copy_tree(folder)
    if version:
        module = tree / "supervisor" / "__init__.py"
        module.write_text(
            re.sub(r'(?m)^__version__ = ".*"$', f'__version__ = "{version}"', module.read_text())
        )
    ran = captured(
        [str(tree / "debian" / "build.sh")], timeout=BUILD_S, env={**os.environ, "PYTHON": sys.executable}
    )
    assert ran.returncode == 0, ran.stderr
    return tree / ran.stdout.strip()


def give_package(machine: Machine, package: Path) -> None:
    """Put the package, and no other version of it, where the machine's commands find it."""
    folder = machine.root / FOLDER
    for former in folder.glob("consul-supervisor_*.deb"):
        former.unlink()
    (folder / package.name).write_bytes(package.read_bytes())
