"""A real supervisor process for one test: its file, its log, its end.

A test uses the process (``python -m supervisor run FILE``, mostly as a fork) as an operator does: by its
configuration, signals, exit code and log. It never outlives its test: PDEATHSIG ends it when the test process
is killed, and ``close`` when the test is over.
"""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Self, TypeVar

import psutil
import yaml

from supervisor.adapters.journal.copies import SUFFIX, folder_of
from tests.support.forks import ForkedProcess, forked
from tests.support.log_lines import undocumented
from tests.support.patience import PATIENCE_S as PATIENCE_S  # for tests of a supervisor
from tests.support.patience import patient

ROOT = Path(__file__).resolve().parents[2]
COMMAND = (sys.executable, "-m", "supervisor")
POLL_S = (0.01, 0.05)  # at first, and at most: each check takes time from the awaited event
POLL_SHARE = 0.02  # of the time waited so far
TAIL_CHARS = 6000
FAULTS = ("Traceback", '"event": "bug"', "Task exception", "was never awaited", "ResourceWarning")
ENVIRON = {"PATH": os.environ["PATH"], "PYTHONWARNINGS": "error", "PYTHONASYNCIODEBUG": ""}
OF_PYTHON = ("PYTHON", "LC_", "LANG", "LD_")  # what counts at the start of Python alone

T = TypeVar("T")


def until(
    condition: Callable[[], T], what: str, within_s: float = PATIENCE_S, log: Callable[[], str] = str
) -> T:
    """Return the first true value of the condition; AssertionError with ``what`` when it does not come.

    within_s: a time of a quiet machine.
    log: returns what the error shows as well, as it is by then.
    """
    began_at = time.monotonic()
    within_s = patient(within_s)
    while not (value := condition()):
        waited_s = time.monotonic() - began_at
        assert waited_s < within_s, f"this did not happen within {within_s:g} s: {what}\n{log()}"
        time.sleep(min(max(POLL_S[0], POLL_SHARE * waited_s), POLL_S[1]))
    return value


def command(*arguments: str, environ: Mapping[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    """Run a command that ends by itself, and return exit code, standard output and standard error."""
    return forked(arguments, {**ENVIRON, **(environ or {})})


class Supervisor:
    """One ``consul-supervisor run``.

    config: the content of its file.
    forks: False: Python starts anew, as it must by way of a program or with variables of its own.
    """

    forks = True

    def __init__(
        self, folder: Path, config: Mapping[str, object], environ: Mapping[str, str] | None = None
    ) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.folder = folder
        self.config_path = folder / "config.yaml"
        self.rewrite(config)
        self.log_path = folder / "log"
        self.state_dir = folder / "state"
        self.places = {"STATE_DIRECTORY": str(self.state_dir), "RUNTIME_DIRECTORY": str(folder)}
        self._environ = {**ENVIRON, **self.places, **(environ or {})}
        self._process: subprocess.Popen[bytes] | ForkedProcess | None = None

    def rewrite(self, config: Mapping[str, object]) -> None:
        unshared = json.loads(json.dumps(config))  # a value that occurs twice would become a YAML alias
        self.config_path.write_text(yaml.safe_dump(unshared, sort_keys=False))

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *raised: object) -> None:
        self.close()

    def start(self) -> None:
        """Start the supervisor, at first or again; its log goes on in the same file."""
        assert not self.running, "the supervisor is running"
        with self.log_path.open("ab") as log:
            run, way = ("run", str(self.config_path)), self.by_way_of()
            of_python = any(name.startswith(OF_PYTHON) for name in self._environ.keys() - ENVIRON)
            if self.forks and not way and not of_python:
                self._process = ForkedProcess(run, self._environ, log.fileno(), log.fileno())
                return
            # setpriv rather than preexec_fn: nothing of Python runs between fork and exec.
            self._process = subprocess.Popen(
                [*way, "setpriv", "--pdeathsig", "KILL", *COMMAND, *run],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd=ROOT,
                env=self._environ,
                start_new_session=True,  # only pytest gets Ctrl-C, and then ends the supervisor
            )

    def by_way_of(self) -> list[str]:
        """Return the program that starts it, with its arguments. Empty: there is none."""
        return []

    @property
    def records(self) -> Path:
        """The folder in which it writes its records. An orderly stop removes the folder."""
        return folder_of(str(self.folder), str(self.state_dir))

    @property
    def running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    @property
    def pid(self) -> int:
        assert self._process is not None, "the supervisor was not started"
        return self._process.pid

    def signal(self, number: signal.Signals) -> None:
        assert self.running, f"the supervisor has ended:\n{self.log_tail()}"
        os.kill(self.pid, number)

    def wait(self, within_s: float = PATIENCE_S) -> int:
        """Return its exit code, once it has ended; negative for a signal."""
        assert self._process is not None, "the supervisor was not started"
        try:
            return self._process.wait(patient(within_s))
        except subprocess.TimeoutExpired:
            raise AssertionError(
                f"the supervisor did not end within {within_s:g} s:\n{self.log_tail()}"
            ) from None

    def stop(self, within_s: float = PATIENCE_S) -> int:
        self.signal(signal.SIGTERM)
        return self.wait(within_s)

    def kill(self) -> None:
        """Send SIGKILL, which is a crash."""
        self.signal(signal.SIGKILL)
        self.wait()

    def close(self) -> None:
        """End the supervisor, in any state, because the test is over."""
        if self._process is not None:
            self._process.kill()  # no effect if the process has ended
            self.wait()

    def ask(self, *words: str) -> subprocess.CompletedProcess[str]:
        """Run a command on its control socket."""
        return command(*words, "--socket", str(self.folder / "control.sock"))

    def operate(self, *words: str) -> tuple[int, str]:
        """Run a command on its control socket, and return exit code and standard error."""
        done = self.ask(*words)
        return done.returncode, done.stderr.strip()

    def status(self) -> dict[str, Any]:
        return dict(json.loads(self.ask("status", "--json").stdout))

    def item(self) -> dict[str, Any]:
        """Return the only item of its status."""
        (only,) = self.status()["items"]
        return dict(only)

    @property
    def log_text(self) -> str:
        """All that the supervisor wrote, over all its starts."""
        return self.log_path.read_text(errors="replace") if self.log_path.exists() else ""

    def log_tail(self) -> str:
        """Return the end of its log, for the text of a failure."""
        return f"--- {self.log_path}\n{self.log_text[-TAIL_CHARS:]}"

    def lines(self, event: str = "", **fields: object) -> list[dict[str, Any]]:
        """Return the lines of its log with this event and these fields, oldest first."""
        texts = self.log_text.splitlines(keepends=True)
        named = json.dumps(event) if event else ""  # a line without the name need not be decoded
        whole = [text for text in texts if named in text and text.startswith("{") and text.endswith("\n")]
        decoded = [json.loads(text) for text in whole]
        return [line for line in decoded if event in ("", line["event"]) and fields.items() <= line.items()]

    def wait_line(self, event: str, within_s: float = PATIENCE_S, **fields: object) -> dict[str, Any]:
        """Return the first such line; AssertionError when it does not come or the process ends without it."""

        def line() -> dict[str, Any] | None:
            ended = not self.running
            found = self.lines(event, **fields)
            assert found or not ended, f"the supervisor ended without {event} {fields}:\n{self.log_tail()}"
            return found[0] if found else None

        found = until(line, f"{event} {fields} in\n{self.log_tail()}", within_s)
        assert found is not None
        return found

    def assert_no_fault(self) -> None:
        """Check that its log has no trace, no bug, no warning of Python and no undocumented line."""
        text = self.log_text
        faults = [fault for fault in FAULTS if fault in text]
        assert not faults, f"{faults} in {self.log_tail()}"
        assert not (unknown := undocumented(self.lines())), f"docs/logs.md does not have {set(unknown)}"


def name_of(process: psutil.Process) -> str:
    """Return the name of a process; blank for one that has ended meanwhile."""
    try:
        return process.name()
    except psutil.NoSuchProcess:
        return ""


def kill_all(processes: Iterable[psutil.Process]) -> None:
    """Kill these processes, of which some may have ended meanwhile."""
    for process in processes:
        with suppress(psutil.NoSuchProcess):
            process.kill()


def processes_of(mark: str) -> list[psutil.Process]:
    """Return all processes with this text in their environment or command line, except this one."""
    found = []
    for process in psutil.process_iter():
        try:
            if process.pid == os.getpid() or process.status() == psutil.STATUS_ZOMBIE:
                continue
            words = [*process.cmdline(), *process.environ().values()]
        except psutil.Error:
            continue  # the process has ended, or belongs to another user
        if any(mark in word for word in words):
            found.append(process)
    return found


def left_behind(folder: Path) -> list[str]:
    """Return the files in this folder, and the processes that name the folder."""
    return [*map(str, folder.iterdir()), *map(str, processes_of(str(folder)))]


def assert_none_left(processes: Callable[[], list[psutil.Process]]) -> None:
    """Check that none of these processes is left, except a child that the supervisor's end does not wait for.

    Such a child copies a record, for which a disk may take seconds, or is a killed fork of the supervisor. It
    is awaited here.
    """
    left = [process.cmdline() for process in processes() if not _is_own_child(process)]
    assert not left, f"processes are left: {left}"
    until(lambda: not processes(), "a copy of a record or a fork has ended")


def _is_own_child(process: psutil.Process) -> bool:
    try:
        command = process.cmdline()
    except psutil.Error:  # the process has ended
        return True
    if not command:  # the process was killed, and is just ending
        return True
    copies = any(word == "events" or word.endswith(SUFFIX) for word in command)
    return copies or command[1:4] == ["-m", "supervisor", "run"]
