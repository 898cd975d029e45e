"""Break each rule of the core and of the driver once: its tests must notice.

    python -m tests.mutants [--write] [--minutes=N] [WORD ...]    those whose reason holds one of the words

With ``--minutes=N`` none begins after that time. Those whose lines a commit of the last day wrote come first,
then the rest, which begins elsewhere on each day.
The mutants are data, in mutants.toml beside this file, each below the name of its source file. Each is
applied to a copy of the tree, never to the tree itself. The test that the entry names runs first. When that
test passes, or none is named, all tests run until the first that fails, the quick ones first, and those
marked long only when all others pass; ``--write`` then names that test in the entry. Exit 1: a mutant
survives, or an ``old`` is not found exactly once.
"""

import json
import os
import re
import subprocess
import sys
import tempfile
import time
import tomllib
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from math import inf
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
DATA = Path(__file__).with_name("mutants.toml")
TESTS = (
    "tests/unit/core",
    "tests/models",
    "tests/unit/runtime/test_driver.py",
    "tests/unit/runtime/test_watchdogs.py",
    "tests/unit/daemon/test_restore.py",
)
SLOW = ("test_every_order.py", "test_two_never_hold.py", "test_never_too_many.py", "test_behind_the_guard.py")
COPIED = ("supervisor", "schemas", "tests", "docs", "pyproject.toml")
CONSUL = ".cache"  # where tests find Consul, for the mutants that only a test with a Consul notices
WRITE = "--write"
MINUTES = "--minutes="
STEP = 61  # so many further on each day; all come first some day
DAY_S = 24 * 3600
PYTEST = "-m pytest -x -q --tb=no -p no:cacheprovider -p no:xdist"
TELLING_CHARS = 20  # a shorter line stands in many places
ANY = ""
LEFT = "left"  # no time was left for this mutant
MARKS = ("not long", "long")
DEPTH = "8"  # of the walks marked "not long": some rules need a deeper walk than that of `make test`
PATIENCE = "0.25"  # a test that notices a mutant often waits for an event that never comes
NO_SUCH_TEST = 4  # pytest's exit code
TIMEOUT_S = {ANY: 120, "not long": 600, "long": 600}


@dataclass(frozen=True)
class Mutant:
    """One change of a source file.

    why: the rule that it breaks.
    file: its path below supervisor.
    old: a text that occurs exactly once in the file, and becomes ``new``.
    test: the test that notices. Empty: not known yet.
    """

    why: str
    file: str
    old: str
    new: str
    test: str = ""


def main() -> int:
    words = [word for word in sys.argv[1:] if not word.startswith("--")]
    minutes = [float(word.removeprefix(MINUTES)) for word in sys.argv if word.startswith(MINUTES)]
    of_files = tomllib.loads(DATA.read_text())
    mutants = [Mutant(file=file, **each) for file, entries in of_files.items() for each in entries]
    mutants = [mutant for mutant in mutants if not words or any(word in mutant.why for word in words)]
    wrong = [mutant for mutant in mutants if source(ROOT, mutant).count(mutant.old) != 1]
    for mutant in wrong:
        print(f"cannot break “{mutant.why}”: {mutant.file} has not exactly one {mutant.old!r}")
    if wrong:
        return 1
    if minutes:
        new, first = recent_lines(), int(time.time() // DAY_S) * STEP % (len(mutants) or 1)
        mutants = mutants[first:] + mutants[:first]
        mutants.sort(key=lambda mutant: not new & set(mutant.old.split("\n")))
    began_at = time.monotonic()
    ends_at = began_at + 60 * min(minutes, default=inf)
    survivors = left = 0

    def tried(mutant: Mutant) -> str | None:
        return noticed_by(mutant) if time.monotonic() < ends_at else LEFT

    with ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        for mutant, noticed in zip(mutants, pool.map(tried, mutants), strict=True):
            if noticed == LEFT:
                left += 1
                continue
            survivors += noticed is None
            print(f"{'caught  ' if noticed else 'SURVIVED'}  {mutant.why:76}  {noticed or ''}", flush=True)
            if noticed and noticed != mutant.test:
                if WRITE in sys.argv and noticed.startswith("tests/"):
                    write_test(mutant, noticed)
                else:
                    print(f"          {mutant.test or 'no test'} was expected to fail")
    took_s = time.monotonic() - began_at
    ran = len(mutants) - left
    print(f"{ran - survivors} of {ran} mutants caught in {took_s:.0f} s; {left} are left for another day")
    return 1 if survivors else 0


def noticed_by(mutant: Mutant) -> str | None:
    """Return the first test that fails with this mutant. None: none fails."""
    with tempfile.TemporaryDirectory(prefix="mutant-") as folder:
        copy = Path(folder)
        # With links as they are and the compiled files, which Python checks.
        subprocess.run(["cp", "-a", *(ROOT / name for name in COPIED), copy], check=True)
        (copy / CONSUL).symlink_to(ROOT / CONSUL)
        text = source(copy, mutant).replace(mutant.old, mutant.new)
        (copy / "supervisor" / mutant.file).write_text(text)
        if mutant.test and first_failure(copy, [mutant.test], ANY):
            return mutant.test
        return next(filter(None, (first_failure(copy, tests(), mark) for mark in MARKS)), None)


def recent_lines() -> set[str]:
    """Return the lines of code that the commits of the last day wrote; none where there is no history."""
    command = ["git", "log", "-p", "-U0", "--format=", "--since=1.day.ago", "--", "supervisor/*.py"]
    ran = subprocess.run(command, cwd=ROOT, check=False, capture_output=True, text=True)
    added = (
        line[1:] for line in ran.stdout.splitlines() if line.startswith("+") and not line.startswith("+++")
    )
    return {line for line in added if len(line.strip()) >= TELLING_CHARS}


def write_test(mutant: Mutant, test: str) -> None:
    """Name the test in the mutant's entry, below its reason."""
    why = re.escape(f"why = {json.dumps(mutant.why, ensure_ascii=False)}\n")
    named = f"test = {json.dumps(test, ensure_ascii=False)}\n"
    DATA.write_text(re.sub(rf"^({why})(?:test = .*\n)?", rf"\1{named}", DATA.read_text(), flags=re.MULTILINE))


def source(root: Path, mutant: Mutant) -> str:
    return (root / "supervisor" / mutant.file).read_text()


def tests() -> list[str]:
    places = [ROOT / place for place in TESTS]
    found = [path for place in places for path in ([place] if place.is_file() else place.glob("test_*.py"))]
    found.sort(key=lambda path: (path.name in SLOW, path.name))
    return [str(path.relative_to(ROOT)) for path in found]


def first_failure(copy: Path, tests: list[str], mark: str) -> str | None:
    """Return the name of the first of these tests that fails in that tree. None: none fails."""
    command = [sys.executable, *PYTEST.split(), "-m", mark, *tests]
    environment = {**os.environ, "PYTHONPATH": str(copy), "PYTHONDONTWRITEBYTECODE": "1", "DEPTH": DEPTH}
    environment["PATIENCE"] = PATIENCE
    try:
        ran = subprocess.run(
            command,
            cwd=copy,
            env=environment,
            check=False,
            capture_output=True,
            text=True,
            timeout=TIMEOUT_S[mark],
        )
    except subprocess.TimeoutExpired:
        return None if mark == "long" else f"a test ran for more than {TIMEOUT_S[mark]} s"  # for ever
    if ran.returncode in (0, NO_SUCH_TEST):
        return None
    failed = re.search(r"^(?:FAILED|ERROR) (tests/.*?)(?: - .*)?$", ran.stdout, re.MULTILINE)
    return failed[1] if failed else f"pytest exited with {ran.returncode}"


if __name__ == "__main__":
    sys.exit(main())
