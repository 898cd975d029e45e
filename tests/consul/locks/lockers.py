"""The processes of one test that hold a lock around a command, and the records that their commands write.

A command is a text for the shell. It writes a line when it begins, when TERM arrives, and when it ends by
itself, each with the time, so that a test can compare when two commands acted.
"""

import os
import signal
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from tests.support.consul import BINARY, Agent
from tests.support.forks import ForkedProcess
from tests.support.supervisor import (
    COMMAND,
    ENVIRON,
    PATIENCE_S,
    ROOT,
    assert_none_left,
    kill_all,
    processes_of,
    until,
)

SHORT = ("--ttl", "2s", "--lock-delay", "3s", "--on-lost", "KILL")  # room 2.5 s
LOCK_DELAY_S = 3.0
SLEEP = "while :; do sleep 0.05; done"  # a shell acts on TERM between two commands
_SCRIPT = """\
note() { echo "$NAME $1 $(cut -d ' ' -f 1 /proc/uptime) $$" >> "$RECORDS"; }
trap 'note term; exit 143' TERM
note begin
%s
note end
"""


@dataclass(frozen=True, slots=True)
class Line:
    """One line of a record: who, what, when (seconds of CLOCK_BOOTTIME) and the process id of the shell."""

    name: str
    what: str
    at: float
    pid: int


@dataclass(frozen=True, slots=True)
class Locker:
    """One process of ``lock`` or of ``consul lock``, and the files of its output."""

    process: subprocess.Popen[bytes] | ForkedProcess
    out: Path
    error: Path

    @property
    def pid(self) -> int:
        return self.process.pid

    def signal(self, number: signal.Signals) -> None:
        os.kill(self.pid, number)

    def wait(self, within_s: float = PATIENCE_S) -> int:
        """Return the exit code, once the process has ended."""
        return self.process.wait(within_s)

    def end(self) -> tuple[int, str, str]:
        """Return exit code, standard output and standard error, once the process has ended."""
        return self.wait(), self.out.read_text(), self.error.read_text()


class Lockers:
    """The processes of one test. ``key`` and ``prefix`` are the test's own.

    records: the file of the commands' lines.
    """

    def __init__(self, agent: Agent, folder: Path, name: str) -> None:
        self.agent = agent
        self.key = f"{name}/key"
        self.prefix = f"{name}/prefix"
        self.records = folder / "lines"
        self._started: list[Locker] = []
        self._mark = str(self.records)

    # --- processes ------------------------------------------------------------------------------------

    def start(
        self,
        *options: str,
        name: str = "a",
        body: str = ":",
        key: str = "",
        argv: Sequence[str] = (),
        before: Sequence[str] = (),
        stderr: IO[bytes] | None = None,
        environ: Mapping[str, str] | None = None,
    ) -> Locker:
        """Start ``lock``, as a fork unless ``before`` or ``stderr`` is given.

        body: what the recording command does. argv: another command, which records nothing.
        before: a program that starts ``lock``, such as ``nohup``.
        """
        command = list(argv) or ["/bin/sh", "-c", _SCRIPT % body]
        lock = ["lock", *options, key or self.key, "--", *command]
        environ = {"CONSUL_HTTP_ADDR": self.agent.url, **(environ or {})}
        if before or stderr:
            return self._start([*before, *COMMAND, *lock], name, environ, stderr)
        return self._start(lock, name, environ, forks=True)

    def consul_lock(self, *options: str, prefix: str, name: str = "theirs", body: str = ":") -> Locker:
        """Start ``consul lock`` with the same kind of command."""
        address = f"-http-addr={self.agent.host}:{self.agent.port}"
        lock = [
            str(BINARY),
            "lock",
            address,
            "-shell=false",
            *options,
            prefix,
            "/bin/sh",
            "-c",
            _SCRIPT % body,
        ]
        return self._start(lock, name, {})

    def _start(
        self,
        argv: list[str],
        name: str,
        environ: Mapping[str, str],
        stderr: IO[bytes] | None = None,
        forks: bool = False,
    ) -> Locker:
        out, error = (self.records.with_name(f"{what}-{len(self._started)}") for what in ("out", "error"))
        environ = {**ENVIRON, "RECORDS": str(self.records), "NAME": name, **environ}
        process: subprocess.Popen[bytes] | ForkedProcess
        with out.open("wb") as to_out, error.open("wb") as to_error:
            if forks:
                process = ForkedProcess(argv, environ, to_out.fileno(), to_error.fileno())
            else:
                process = subprocess.Popen(
                    argv,
                    stdin=subprocess.DEVNULL,
                    stdout=to_out,
                    stderr=stderr or to_error,
                    cwd=ROOT,
                    env=environ,
                    start_new_session=True,
                )
        self._started.append(Locker(process, out, error))
        return self._started[-1]

    def holder(self, *options: str, name: str = "a", body: str = SLEEP, **how: Any) -> Locker:
        """Start ``lock``, and return when its command has begun."""
        locker = self.start(*options, name=name, body=body, **how)
        self.wait_line(name, "begin")
        return locker

    def close(self) -> None:
        """Leave no process behind, and check that none has an exception of ours on standard error."""
        for locker in self._started:
            locker.process.kill()
            locker.wait()
        kill_all(self.left())  # the command of a killed `consul lock` goes on
        for locker in self._started:
            _, out, error = locker.end()
            assert "Traceback" not in out + error, out + error

    def left(self) -> list[Any]:
        """Return all processes that this test has started and that still run."""
        return processes_of(self._mark)

    def assert_nothing_left_of(self, name: str) -> None:
        """Check that the command of this name has ended."""
        pids = [line.pid for line in self.lines(name)]
        until(lambda: not any(map(is_alive, pids)), f"the command {name} has ended", within_s=5.0)

    def assert_nothing_left(self) -> None:
        """Check that neither a command nor a killer is left."""
        until(lambda: not self.left(), "the processes of the test have ended", within_s=5.0)
        assert_none_left(self.left)

    # --- records --------------------------------------------------------------------------------------

    def lines(self, name: str = "", what: str = "") -> list[Line]:
        """Return the lines of the commands, oldest first."""
        if not self.records.exists():
            return []
        words = [
            line.split() for line in self.records.read_text().splitlines(keepends=True) if line[-1] == "\n"
        ]
        lines = [Line(who, said, float(at), int(pid)) for who, said, at, pid in words]
        return [line for line in lines if name in ("", line.name) and what in ("", line.what)]

    def wait_line(self, name: str, what: str) -> Line:
        return until(lambda: self.lines(name, what), f"{name} {what}")[0]

    # --- Consul ---------------------------------------------------------------------------------------

    def session(self, key: str = "") -> str:
        """Return the session that holds the key. Blank: none does."""
        entry = self.agent.kv_get(key or self.key)
        return "" if entry is None else str(entry["Session"])

    def is_waiting(self, sessions: int) -> bool:
        """Return whether this number of sessions of ``lock`` exist."""
        names = [each["Name"] for each in self.agent.sessions()]
        return names.count(f"consul-supervisor:lock {self.key}") == sessions


def is_alive(pid: int) -> bool:
    """Return whether the process runs; a zombie does not."""
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


def children(pid: int) -> list[int]:
    with open(f"/proc/{pid}/task/{pid}/children") as file:
        return [int(word) for word in file.read().split()]
