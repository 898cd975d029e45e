"""A bash that runs the commands of a page, and leaves nothing behind.

It does not know the product: the test provides programs and variables.
"""

import os
import re
import select
import subprocess
import time
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

import psutil

from tests.support.programs import script
from tests.support.supervisor import PATIENCE_S, kill_all

MARK = "---this command is over---"
# The parts of an output that differ from run to run, replaced in this order.
VARIABLE = (
    (r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d+Z", "TIME"),
    (r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}", "ID"),
    (r"\btoken \d+", "token N"),
    (r"\b\d+\.\d+ s left", "N s left"),
)


class Shell:
    """A bash that runs one command after the other.

    folder: ``folder/bin`` comes first on its PATH.
    cwd: the folder that it begins in.
    environ: all its variables except PATH.
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
        self.run("set -m")  # %1 needs job control

    def provide(self, program: str, line: str) -> None:
        """Put a program on the PATH; a process that it starts dies with its parent."""
        script(self._programs / program, f"exec setpriv --pdeathsig KILL {line}")

    def run(self, command: str, within_s: float = PATIENCE_S) -> str:
        return self.ended(command, within_s)[1]

    def ended(self, command: str, within_s: float = PATIENCE_S) -> tuple[int, str]:
        """Run a command, and return its exit code and its output on both streams."""
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

    def run_all(self, lines: Iterable[str], within_s: float = PATIENCE_S) -> str:
        """Run these commands, each of which must end well, and return their output."""
        all_printed = ""
        for line in lines:
            code, printed = self.ended(line, within_s)
            assert code == 0, f"{line} ends with {code}: {printed}"
            all_printed += printed
        return all_printed

    def close(self) -> None:
        """End the shell and all that it started."""
        started = psutil.Process(self._bash.pid).children(recursive=True)
        with self._bash:
            self._bash.kill()
        kill_all(started)
        psutil.wait_procs(started, timeout=PATIENCE_S)


def replay(shell: Shell, session: str) -> None:
    """Run a session (```console) and compare its output with the shown one.

    A sleep is for human readers: here a command is repeated until its output is right.
    """
    for line, expected in steps(session):
        if not line.startswith("sleep "):
            _repeat(shell, line, expected)


def paste(shell: Shell, block: str, expected: str = "") -> None:
    """Run a block of commands (```sh) and compare the output of its last command with the shown one.

    The commands before it print nothing. A sleep is left out, as in ``replay``.
    """
    lines = [line for line in block.splitlines(keepends=True) if not line.startswith("sleep ")]
    *before, last = lines if expected else (*lines, "")
    printed = shell.run("".join(before)) if before else ""
    assert printed == "", f"{block} prints an output that is not shown: {printed}"
    if last:
        _repeat(shell, last.rstrip("\n"), expected)


def _repeat(shell: Shell, line: str, expected: str) -> None:
    """Run a command until it prints the shown output; a command without a shown output runs once."""
    give_up_at = time.monotonic() + PATIENCE_S
    while constant(printed := shell.run(line)) != constant(expected):
        assert expected, f"{line} prints an output that is not shown: {printed}"
        assert time.monotonic() < give_up_at, f"{line} prints {printed}"
        time.sleep(0.05)


def steps(session: str) -> Iterator[tuple[str, str]]:
    """Return the commands of a shell session, here-documents included, each with the output that it shows."""
    before, *found = re.split(r"^\$ ", session, flags=re.MULTILINE)
    assert found and not before, f"a session begins with a command: {session}"
    for step in found:
        line, _, rest = step.partition("\n")
        if here := re.search(r"<<'(\w+)'", line):
            document, end, rest = rest.partition(f"{here[1]}\n")
            line = f"{line}\n{document}{end}"
        yield line, rest


def constant(text: str) -> str:
    """Return the text without the parts that differ from run to run."""
    for pattern, stands_for in VARIABLE:
        text = re.sub(pattern, stands_for, text)
    return text.strip()
