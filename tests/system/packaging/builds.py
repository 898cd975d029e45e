"""A copy of this tree, and wheel and sdist of it, built by the backend that is installed here: no network."""

import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
SCHEMA = "schemas/config.schema.json"
COMMAND_S = 170.0  # of pip, which may have to ask an index for each package
# What would tell another Python to take this one's modules, or another pip where to put them.
OURS = ("PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV", "SOURCE_DATE_EPOCH")


def copy_tree(target: Path) -> Path:
    """What a fresh clone would have, and what is not committed yet; links stay links."""
    ignored = [line.strip("/") for line in (ROOT / ".gitignore").read_text().split()]
    shutil.copytree(ROOT, target, symlinks=True, ignore=shutil.ignore_patterns(".git", *ignored))
    return target


def build(source: Path, target: Path, kind: str, environ: Mapping[str, str] | None = None) -> Path:
    """``kind`` is ``wheel`` or ``sdist``; the file that was built."""
    argv = [
        sys.executable,
        "-m",
        "build",
        "--no-isolation",
        f"--{kind}",
        "--outdir",
        str(target),
        str(source),
    ]
    run(*argv, cwd=source, environ=environ)
    (built,) = target.glob("*.whl" if kind == "wheel" else "*.tar.gz")
    return built


def run(*argv: str, cwd: Path, environ: Mapping[str, str] | None = None) -> str:
    """What it printed; it must end with 0."""
    ran = subprocess.run(
        argv,
        check=False,
        capture_output=True,
        text=True,
        cwd=cwd,
        env={**clean_environ(), **(environ or {})},
        timeout=COMMAND_S,
    )
    assert ran.returncode == 0, f"{argv}:\n{ran.stdout}\n{ran.stderr}"
    return ran.stdout


def clean_environ() -> dict[str, str]:
    """Ours, without what leads into this tree or this environment."""
    return {name: value for name, value in os.environ.items() if name not in OURS}
