"""Run the stages of a whole test run, two at a time, and tell of each how it ended.

    python -m tests.stages            every stage, as `make test-all`
    python -m tests.stages --change   `make test`, and what a change has to pass, as CI
    python -m tests.stages --plan     print only what a change has to pass, and why

A change has to pass the stages that one of its files touches, by stages.toml beside this file. Of the others
it has to pass every third, but for those that have hardly ever been the first to find a fault. The number of
commits decides where this count begins. These, and all of a change that touches more than WIDE stages, it
passes in their brief form, because all stages take an hour: a shorter run, or the part of the tests that has
its turn by that number (tests/support/share.py).

The change is what is ahead of BASE; without that variable, what is ahead of the main branch of ``origin``, or
else, as in a fresh clone, the commits of the eight hours before the newest one.

A stage that fails keeps no other from running. The whole output of each is in a file below .cache/stages, and
the last lines name what failed, with its file. Exit 1: a stage failed, or something was left behind.
"""

import argparse
import os
import re
import signal
import subprocess
import sys
import threading
import time
import tomllib
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from tests.support.leftovers import leftovers

ROOT = Path(__file__).resolve().parents[1]
DATA = Path(__file__).with_name("stages.toml")
LOGS = ROOT / ".cache" / "stages"
AT_ONCE = 2  # one that computes beside one that mostly waits
OTHERS = 3  # every third of the stages that the change does not touch
WIDE = 4  # so many whole stages take some twenty minutes
STAGE_S_MAX = 2700.0  # one that hangs is ended, so that the others are told of
CHANGE_S = 8 * 3600.0  # in a clone whose main branch is that of ``origin``
CAUSES_MAX = 5  # lines of each stage that failed: all of them stay within a screen
CAUSE_CHARS_MAX = 200
LEAVES_S = 10.0  # a process that was killed may take a moment to end
TAIL_LINES = 150  # of the output of a stage that failed
CAUSE = re.compile(
    r"^(?:FAILED |ERROR |SURVIVED|broken|cannot |left behind|make\S*: \*\*\*|\S+: error: |.*; expected: ).*",
    re.M,
)
RUNNING: set[int] = set()  # the process groups of the stages that run
SEED = re.compile(r"^seed \d+", re.M)
SUMMARY = re.compile(r"^=+ .*(?:passed|failed|error).* =+$", re.M)
COUNTED = re.compile(r"(\d+) (passed|failed|error)")


@dataclass(frozen=True, slots=True)
class Stage:
    """A target of the Makefile, with its variables.

    paths: how the names of the files begin that touch it.
    brief: further variables, which shorten it. ``{turn}`` becomes the number of commits.
    in_turn: False: only a change that touches it has to pass it.
    root: whether it needs root.
    boots: whether it boots machines. Two such stages at once are late for everything.
    """

    run: str
    paths: tuple[str, ...] = ()
    brief: str = ""
    in_turn: bool = True
    root: bool = False
    boots: bool = False

    @property
    def log(self) -> Path:
        return LOGS / f"{re.sub(r'[^a-z0-9]+', '-', self.run.lower()).strip('-')}.log"


@dataclass(frozen=True, slots=True)
class End:
    """How a stage ended: the exit code of make, the minutes, those of the processor, the output.

    cpu_minutes: of all processes that the stage has awaited, on any core.
    """

    stage: Stage
    code: int
    minutes: float
    cpu_minutes: float
    text: str

    def __str__(self) -> str:
        taken = f"{self.minutes:5.1f} min, {self.cpu_minutes:5.1f} of processor time"
        return f"{'FAILED' if self.code else 'ok':6}  {taken}  {self.stage.run}"

    def told(self) -> str:
        """Return what is printed at the end of the stage: tests that were rerun, and its last words."""
        reruns = sorted(set(re.findall(r"^RERUN .*", self.text, re.M)))
        lines = self.text.rstrip().splitlines()
        shown = lines[-TAIL_LINES:] if self.code else [*reruns, *lines[-1:]]
        return "\n".join([str(self), *(f"        {line}" for line in shown)])

    def causes(self) -> list[str]:
        """Return the lines that name what failed, with the seed and the file of all output."""
        found = CAUSE.findall(self.text) or self.text.rstrip().splitlines()[-1:]
        lines = [line[:CAUSE_CHARS_MAX] for line in [*SEED.findall(self.text)[-1:], *found[:CAUSES_MAX]]]
        return [*(f"{self.stage.run}: {line}" for line in lines), f"    all of it: {self.stage.log}"]


def stages() -> list[Stage]:
    """Return the stages of stages.toml, without root only those that do not need it."""
    tables = tomllib.loads(DATA.read_text())["stage"]
    known = [Stage(**{**each, "paths": tuple(each["paths"])}) for each in tables]
    return [stage for stage in known if os.geteuid() == 0 or not stage.root]


def git(*arguments: str) -> list[str]:
    """Return the lines that git prints; none where there is no history."""
    ran = subprocess.run(["git", *arguments], cwd=ROOT, check=False, capture_output=True, text=True)
    return ran.stdout.splitlines() if ran.returncode == 0 else []


def changed() -> set[str]:
    """Return the files of the change. SystemExit: git does not know the commit that BASE names."""
    base = os.environ.get("BASE") or "origin/main"
    if os.environ.get("BASE") and not git("rev-parse", "--verify", "--quiet", f"{base}^{{commit}}"):
        sys.exit(f"cannot find the change: git does not know BASE={base}; name a commit or a branch")
    ahead = git("diff", "--name-only", f"{base}...HEAD")
    if ahead or os.environ.get("BASE"):
        return set(ahead)
    newest_s = int((git("log", "-1", "--format=%ct") or ["0"])[0])
    return set(git("log", "--format=", "--name-only", f"--since={newest_s - CHANGE_S:.0f}")) - {""}


def planned(known: Sequence[Stage], files: set[str], turn: int) -> Iterator[tuple[Stage, str]]:
    """Yield each stage with the reason why the change has to pass it; blank where it has not."""
    touching = {stage: sorted(file for file in files if file.startswith(stage.paths)) for stage in known}
    wide, untouched = sum(map(bool, touching.values())) > WIDE, 0
    for stage, by in touching.items():
        brief = replace(stage, run=f"{stage.run} {stage.brief.format(turn=turn)}".rstrip())
        if by:
            yield brief if wide else stage, f"{by[0]}{f' and {len(by) - 1} more' if by[1:] else ''}"
        else:
            yield brief, "in turn" if stage.in_turn and untouched % OTHERS == turn % OTHERS else ""
            untouched += stage.in_turn


def run(stage: Stage) -> End:
    """Run the stage to its end, with its output in its file."""
    began = time.monotonic()
    stage.log.parent.mkdir(parents=True, exist_ok=True)
    environ = {name: value for name, value in os.environ.items() if name != "MAKELEVEL"}
    with stage.log.open("w") as log:
        argv = ["sh", "-c", f"exec make --no-print-directory {stage.run}"]
        made = subprocess.Popen(argv, cwd=ROOT, stdout=log, stderr=log, env=environ, start_new_session=True)
        RUNNING.add(made.pid)
        hangs = threading.Timer(STAGE_S_MAX, os.killpg, (made.pid, signal.SIGKILL))
        hangs.start()
        _, status, used = os.wait4(made.pid, 0)
        RUNNING.discard(made.pid)
        hangs.cancel()
        made.returncode = os.waitstatus_to_exitcode(status)
        if time.monotonic() - began >= STAGE_S_MAX:
            log.write(f"\ncannot go on: it ran for more than {STAGE_S_MAX / 60:g} minutes\n")
    minutes, cpu_minutes = (time.monotonic() - began) / 60, (used.ru_utime + used.ru_stime) / 60
    return End(stage, made.returncode, minutes, cpu_minutes, stage.log.read_text(errors="replace"))


def end(number: int, frame: object) -> None:
    """End with the stages that run, at Ctrl-C or TERM."""
    for group in tuple(RUNNING):
        with suppress(ProcessLookupError):
            os.killpg(group, signal.SIGTERM)
    os._exit(128 + number)


def play(first: Sequence[Stage], others: Sequence[Stage]) -> int:
    """Run the first stages one by one and the others two at a time; return the exit code.

    Those that boot machines run one after the other.
    """
    before = leftovers()
    ends: list[End] = []

    def in_turn(some: Sequence[Stage]) -> None:
        for stage in some:
            ends.append(run(stage))
            print(ends[-1].told(), flush=True)

    in_turn(first)
    booting = [stage for stage in others if stage.boots]
    with ThreadPoolExecutor(AT_ONCE) as pool:
        rows = [booting, *([stage] for stage in others if not stage.boots)]
        for row in [pool.submit(in_turn, row) for row in rows]:
            row.result()
    gives_up_at = time.monotonic() + LEAVES_S
    while (left := sorted(leftovers() - before)) and time.monotonic() < gives_up_at:
        time.sleep(0.1)
    failed = [end for end in ends if end.code]
    counts = {"passed": 0, "failed": 0, "error": 0}
    for summary in (found for end in ends for found in SUMMARY.findall(end.text)):
        for count, kind in COUNTED.findall(summary):
            counts[kind] += int(count)
    print("", *ends, sep="\n")
    print(*(line for end in failed for line in end.causes()), sep="\n")
    print(*(f"left behind: {what}" for what in left[:CAUSES_MAX]), sep="\n")
    without_count = sum(not SUMMARY.search(end.text) for end in failed)
    print(
        f"{counts['passed']} passed, {counts['failed'] + counts['error'] + without_count + len(left)} failed"
    )
    return 1 if failed or left else 0


def main(arguments: Sequence[str]) -> int:
    """Run what is asked for, and return the exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.stages", description="Run every stage of a whole test run.", allow_abbrev=False
    )
    which = parser.add_mutually_exclusive_group()
    which.add_argument(
        "--change", action="store_true", help="run `make test`, and what the change has to pass"
    )
    which.add_argument("--plan", action="store_true", help="print only what the change has to pass, and why")
    asked = parser.parse_args(arguments)
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, end)
    known = stages()
    if not (asked.change or asked.plan):
        return play([], known)
    turn = len(git("rev-list", "HEAD"))
    plan = list(planned(known, changed(), turn))
    print(f"{turn} commits. A change has to pass what it touches, and in turn a third of the other stages:")
    for stage, why in plan:
        print(f"{'run ' if why else 'skip'}  {stage.run:70} {why}", flush=True)
    if asked.plan:
        return 0
    return play([Stage("test")], [stage for stage, why in plan if why])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
