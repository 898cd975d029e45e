"""A copy of this tree, and the wheel and sdist of it, built without a network by the installed backend."""

import os
import shutil
import sys
from collections.abc import Mapping
from pathlib import Path

from tests.support.captured import captured

ROOT = Path(__file__).resolve().parents[3]
SCHEMA = "schemas/config.schema.json"
COMMAND_S = 170.0  # time for pip, which may have to query an index for each package
# These would make another Python use the modules of this one, or pip install elsewhere.
OURS = ("PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV", "SOURCE_DATE_EPOCH")


def copy_tree(target: Path) -> Path:
    """Copy the files of a fresh clone, with uncommitted changes; links stay links."""
    ignored = [Path(line).name for line in (ROOT / ".gitignore").read_text().split()]
    shutil.copytree(ROOT, target, symlinks=True, ignore=shutil.ignore_patterns(".git", *ignored))
    return target


def build(source: Path, target: Path, kind: str, environ: Mapping[str, str] | None = None) -> Path:
    """Build a file and return it; ``kind`` is ``wheel`` or ``sdist``."""
    argv = (sys.executable, "-m", "build", "--no-isolation", f"--{kind}")
    run(*argv, "--outdir", str(target), str(source), cwd=source, environ=environ)
    (built,) = target.glob("*.whl" if kind == "wheel" else "*.tar.gz")
    return built


def run(*argv: str, cwd: Path, environ: Mapping[str, str] | None = None, within_s: float = COMMAND_S) -> str:
    """Run a command that must end with 0, and return its output."""
    ran = captured(argv, cwd=cwd, env={**clean_environ(), **(environ or {})}, timeout=within_s)
    assert ran.returncode == 0, f"{argv}:\n{ran.stdout}\n{ran.stderr}"
    return ran.stdout


def clean_environ() -> dict[str, str]:
    """Return our environment without the variables that lead into this tree or this environment."""
    return {name: value for name, value in os.environ.items() if name not in OURS}
