"""Break each rule of the core, of the driver and of the journal once: its tests must notice.

    python -m tests.mutants [--quick] [WORD ...]     only those whose reason holds one of the words

The mutants are data, in mutants.toml beside this file. Each is applied to a copy of the tree, never to the
tree itself. There these tests run until the first that fails, the quick ones first, and those marked long
only when all others pass. Exit 1 when a mutant survives, or when its ``old`` does not occur exactly once.
"""

import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import tomllib
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
DATA = Path(__file__).with_name("mutants.toml")
TESTS = (
    "tests/unit/core",
    "tests/models",
    "tests/unit/daemon/test_driver.py",
    "tests/unit/daemon/test_restore.py",
    "tests/unit/journal/test_journal.py",
    "tests/unit/journal/test_damaged_records.py",
    "tests/unit/journal/test_event_file.py",
)
SLOW = ("test_every_order.py", "test_two_never_hold.py", "test_never_too_many.py")
COPIED = ("supervisor", "schemas", "tests", "docs", "pyproject.toml")
QUICK = "--quick"  # without the walks over every order: a survivor is a mutant that only those notice
MARKS = ("not long", "long")
DEPTH = "2"  # of the walks marked "not long": some rules need a deeper walk than that of `make test`
TIMEOUT_S = 600  # for each of the two runs; a mutant that makes a test run for ever counts as noticed


@dataclass(frozen=True)
class Mutant:
    """One change of a source file.

    why: the rule that it breaks.
    file: its path below supervisor.
    old: a text that occurs exactly once in the file, and becomes ``new``.
    """

    why: str
    file: str
    old: str
    new: str


def main() -> int:
    """Run the mutants, print the table, and return the exit code."""
    words = [word for word in sys.argv[1:] if word != QUICK]
    mutants = [Mutant(**each) for each in tomllib.loads(DATA.read_text())["mutant"]]
    mutants = [mutant for mutant in mutants if not words or any(word in mutant.why for word in words)]
    wrong = [mutant for mutant in mutants if source(ROOT, mutant).count(mutant.old) != 1]
    for mutant in wrong:
        print(f"cannot break “{mutant.why}”: {mutant.file} has not exactly one {mutant.old!r}")
    if wrong:
        return 1
    began_at = time.monotonic()
    survivors = 0
    with ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        for mutant, noticed in zip(mutants, pool.map(noticed_by, mutants), strict=True):
            survivors += noticed is None
            print(f"{'caught  ' if noticed else 'SURVIVED'}  {mutant.why:76}  {noticed or ''}", flush=True)
    took_s = time.monotonic() - began_at
    print(f"{len(mutants) - survivors} of {len(mutants)} mutants caught in {took_s:.0f} s")
    return 1 if survivors else 0


def noticed_by(mutant: Mutant) -> str | None:
    """Return the first test that fails with this mutant. None: none fails."""
    with tempfile.TemporaryDirectory(prefix="mutant-") as folder:
        copy = Path(folder)
        for name in COPIED:
            clone(ROOT / name, copy / name)
        text = source(copy, mutant).replace(mutant.old, mutant.new)
        (copy / "supervisor" / mutant.file).write_text(text)
        marks = MARKS[:1] if QUICK in sys.argv else MARKS
        return next(filter(None, (first_failure(copy, mark) for mark in marks)), None)


def clone(source: Path, target: Path) -> None:
    """Copy a file, or a folder with its links as they are and without compiled files."""
    if source.is_dir():
        shutil.copytree(source, target, symlinks=True, ignore=shutil.ignore_patterns("__pycache__"))
    else:
        shutil.copy(source, target)


def source(root: Path, mutant: Mutant) -> str:
    """Return the text of the mutant's file in the tree at ``root``."""
    return (root / "supervisor" / mutant.file).read_text()


def first_failure(copy: Path, mark: str) -> str | None:
    """Return the name of the first of these tests that fails in that tree. None: none fails."""
    places = [ROOT / place for place in TESTS]
    found = [path for place in places for path in ([place] if place.is_file() else place.glob("test_*.py"))]
    tests = sorted(found, key=lambda path: (path.name in SLOW, path.name))
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-x",
        "-q",
        "--tb=no",
        "-p",
        "no:cacheprovider",
        "-p",
        "no:xdist",
        "-m",
        mark,
    ]
    quick_only = QUICK in sys.argv
    command += [str(path.relative_to(ROOT)) for path in tests if not (quick_only and path.name in SLOW)]
    environment = {**os.environ, "PYTHONPATH": str(copy), "PYTHONDONTWRITEBYTECODE": "1", "DEPTH": DEPTH}
    try:
        ran = subprocess.run(
            command, cwd=copy, env=environment, check=False, capture_output=True, text=True, timeout=TIMEOUT_S
        )
    except subprocess.TimeoutExpired:
        return f"a test ran for more than {TIMEOUT_S} s"
    if ran.returncode == 0:
        return None
    failed = re.search(r"^(?:FAILED|ERROR) tests/(?:core/)?(.*?)(?: - .*)?$", ran.stdout, re.MULTILINE)
    return failed[1] if failed else f"pytest exited with {ran.returncode}"


if __name__ == "__main__":
    sys.exit(main())
