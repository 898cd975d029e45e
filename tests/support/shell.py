"""A bash that runs what a page shows, and leaves nothing behind.

It knows nothing of the product: which programs and which variables there are is said by the test.
"""

import os
import re
import select
import subprocess
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

import psutil

from tests.support.supervisor import PATIENCE_S, kill_all

MARK = "---this command is over---"
# In this order; what differs from run to run, and nothing else.
VARIABLE = (
    (r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d+Z", "TIME"),
    (r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}", "ID"),
    (r"\btoken \d+", "token N"),
    (r"\b\d+\.\d+ s left", "N s left"),
)


class Shell:
    """A bash that is told one command after the other; ``folder/bin`` comes first on its PATH.

    ``cwd`` is where it begins, ``environ`` all that it has beside PATH.
    """

    def __init__(self, folder: Path, cwd: Path, environ: Mapping[str, str]) -> None:
        self._programs = folder / "bin"
        self._programs.mkdir()
        self._bash = subprocess.Popen(
            ["setpriv", "--pdeathsig", "KILL", "bash", "--noprofile", "--norc"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            bufsize=0,
            cwd=cwd,
            env={**environ, "PATH": f"{self._programs}:{os.environ['PATH']}"},
        )
        self.run("set -m")  # %1 is for shells with job control

    def provide(self, program: str, line: str) -> None:
        """Put a program on its PATH; what the line starts dies with whoever started it."""
        file = self._programs / program
        file.write_text(f"#!/bin/sh\nexec setpriv --pdeathsig KILL {line}\n")
        file.chmod(0o755)

    def run(self, command: str, within_s: float = PATIENCE_S) -> str:
        """What a command prints, on both streams."""
        return self.ended(command, within_s)[1]

    def ended(self, command: str, within_s: float = PATIENCE_S) -> tuple[int, str]:
        """The exit code of a command, and what it prints on both streams."""
        assert self._bash.stdin is not None and self._bash.stdout is not None
        self._bash.stdin.write(f"{command}\necho {MARK}$?\n".encode())
        give_up_at = time.monotonic() + within_s
        printed = b""
        while not (over := re.search(rf"{MARK}(\d+)\n\Z", printed.decode(errors="replace"))):
            left_s = max(0.0, give_up_at - time.monotonic())
            ready, _, _ = select.select([self._bash.stdout], [], [], left_s)
            assert ready, f"{command} is not over after {within_s:g} s: {printed.decode(errors='replace')}"
            more = os.read(self._bash.stdout.fileno(), 2**16)
            assert more, f"the shell ended at: {command}"
            printed += more
        return int(over[1]), over.string[: over.start()]

    def close(self) -> None:
        """End the shell and whatever it started."""
        started = psutil.Process(self._bash.pid).children(recursive=True)
        with self._bash:
            self._bash.kill()
        kill_all(started)
        psutil.wait_procs(started, timeout=PATIENCE_S)


def replay(shell: Shell, session: str) -> None:
    """Run a session (```console) and compare what it prints with what is shown.

    A sleep is for people: here a command is repeated until it prints what it should.
    """
    for line, expected in steps(session):
        if not line.startswith("sleep "):
            _repeat(shell, line, expected)


def paste(shell: Shell, block: str, expected: str = "") -> None:
    """Run a block of commands (```sh) and compare what its last command prints with what is shown.

    The commands before it print nothing. A sleep is left out, as in ``replay``.
    """
    lines = [line for line in block.splitlines(keepends=True) if not line.startswith("sleep ")]
    *before, last = lines if expected else (*lines, "")
    printed = shell.run("".join(before)) if before else ""
    assert printed == "", f"{block} prints what is not shown: {printed}"
    if last:
        _repeat(shell, last.rstrip("\n"), expected)


def _repeat(shell: Shell, line: str, expected: str) -> None:
    """Run a command until it prints what is shown; a command that shows nothing runs once."""
    give_up_at = time.monotonic() + PATIENCE_S
    while constant(printed := shell.run(line)) != constant(expected):
        assert expected, f"{line} prints what is not shown: {printed}"
        assert time.monotonic() < give_up_at, f"{line} prints {printed}"
        time.sleep(0.05)


def steps(session: str) -> Iterator[tuple[str, str]]:
    """The commands of a shell session, here-documents included, each with the output it shows."""
    before, *found = re.split(r"^\$ ", session, flags=re.MULTILINE)
    assert found and not before, f"a session begins with a command: {session}"
    for step in found:
        line, _, rest = step.partition("\n")
        if here := re.search(r"<<'(\w+)'", line):
            document, end, rest = rest.partition(f"{here[1]}\n")
            line = f"{line}\n{document}{end}"
        yield line, rest


def constant(text: str) -> str:
    """The text without what differs each time."""
    for pattern, stands_for in VARIABLE:
        text = re.sub(pattern, stands_for, text)
    return text.strip()
