"""The product and its dependencies as wheels for the machine's Python.

They come from wherever pip gets packages here. The machine has no network and installs from this folder
alone.
"""

import os
import subprocess
import sys
from pathlib import Path

from supervisor import __version__

ROOT = Path(__file__).resolve().parents[3]
PYTHON = "3.11"  # the Python of Debian 12
PIP_S = 300.0


def make_wheels(folder: Path, source: Path = ROOT, version: str = __version__) -> None:
    """Fill a new folder with the wheels of that tree by this version; raise RuntimeError."""
    folder.mkdir(parents=True)
    options = ("--no-deps", "--no-build-isolation", "--wheel-dir", str(folder))
    _pip("wheel", *options, str(source), SETUPTOOLS_SCM_PRETEND_VERSION=version)
    (product,) = folder.glob("consul_supervisor-*.whl")
    only = ("--only-binary=:all:", f"--python-version={PYTHON}")
    _pip("download", *only, "--find-links", str(folder), "--dest", str(folder), str(product))


def _pip(*arguments: str, **environ: str) -> None:
    argv = [sys.executable, "-m", "pip", "--disable-pip-version-check", *arguments]
    environ = {**os.environ, **environ}
    ran = subprocess.run(argv, check=False, capture_output=True, text=True, timeout=PIP_S, env=environ)
    if ran.returncode:
        raise RuntimeError(f"pip {arguments[0]}: {ran.stdout}{ran.stderr}")
