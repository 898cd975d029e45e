"""A real supervisor process for one test: its file, its log, its end.

The process is the installed command in all but name (``python -m supervisor run FILE``) and is
spoken to as an operator does: by its configuration, signals, exit code and log. It never outlives
its test: PDEATHSIG ends it when the test process is killed, ``close`` when the test is over.
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
from typing import Any, TypeVar

import psutil
import yaml

from tests.support.log_lines import undocumented
from tests.support.patience import PATIENCE_S as PATIENCE_S  # for tests of a supervisor
from tests.support.patience import patient

ROOT = Path(__file__).resolve().parents[2]
COMMAND = (sys.executable, "-m", "supervisor")
POLL_S = (0.01, 0.05)  # at first, and at most: each look takes time from what we wait for
POLL_SHARE = 0.02  # of the time waited so far
TAIL_CHARS = 6000
FAULTS = ("Traceback", '"event": "bug"', "Task exception", "was never awaited", "ResourceWarning")
ENVIRON = {"PATH": os.environ["PATH"], "PYTHONWARNINGS": "error", "PYTHONASYNCIODEBUG": ""}

T = TypeVar("T")


def until(condition: Callable[[], T], what: str, within_s: float = PATIENCE_S) -> T:
    """The first true value of the condition; AssertionError with ``what`` when it does not come.

    ``within_s`` is of a quiet machine.
    """
    began_at = time.monotonic()
    within_s = patient(within_s)
    while not (value := condition()):
        waited_s = time.monotonic() - began_at
        assert waited_s < within_s, f"this did not happen within {within_s:g} s: {what}"
        time.sleep(min(max(POLL_S[0], POLL_SHARE * waited_s), POLL_S[1]))
    return value


def command(
    *arguments: str, environ: Mapping[str, str] | None = None, stdin: str = ""
) -> subprocess.CompletedProcess[str]:
    """A command that ends by itself, with its exit code, standard output and standard error."""
    return subprocess.run(
        [*COMMAND, *arguments],
        check=False,
        capture_output=True,
        text=True,
        input=stdin,
        cwd=ROOT,
        env={**ENVIRON, **(environ or {})},
        timeout=PATIENCE_S,
    )


class Supervisor:
    """One ``consul-supervisor run``; ``config`` is the content of its file."""

    def __init__(
        self, folder: Path, config: Mapping[str, object], environ: Mapping[str, str] | None = None
    ) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.folder = folder
        self.config_path = folder / "config.yaml"
        self.rewrite(config)
        self.log_path = folder / "log"
        self.state_dir = folder / "state"
        places = {"STATE_DIRECTORY": str(self.state_dir), "RUNTIME_DIRECTORY": str(folder)}
        self._environ = {**ENVIRON, **places, **(environ or {})}
        self._process: subprocess.Popen[bytes] | None = None

    def rewrite(self, config: Mapping[str, object]) -> None:
        """Its file has this content from now on."""
        unshared = json.loads(json.dumps(config))  # what is there twice would become a YAML alias
        self.config_path.write_text(yaml.safe_dump(unshared, sort_keys=False))

    def start(self) -> None:
        """Start it (again); its log goes on in the same file."""
        assert not self.running, "it is running"
        with self.log_path.open("ab") as log:
            self._process = subprocess.Popen(
                self._argv(),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd=ROOT,
                env=self._environ,
                start_new_session=True,  # Ctrl-C is for pytest, which then ends it
            )

    def _argv(self) -> list[str]:
        # setpriv rather than preexec_fn: nothing of Python runs between fork and exec.
        return ["setpriv", "--pdeathsig", "KILL", *COMMAND, "run", str(self.config_path)]

    @property
    def running(self) -> bool:
        """Whether the process has not ended."""
        return self._process is not None and self._process.poll() is None

    @property
    def pid(self) -> int:
        """The process id of the running supervisor."""
        assert self._process is not None, "it was not started"
        return self._process.pid

    def signal(self, number: signal.Signals) -> None:
        """Send it a signal."""
        assert self.running, f"it has ended:\n{self.log_tail()}"
        os.kill(self.pid, number)

    def wait(self, within_s: float = PATIENCE_S) -> int:
        """Its exit code, once it has ended; negative for a signal."""
        assert self._process is not None, "it was not started"
        try:
            return self._process.wait(patient(within_s))
        except subprocess.TimeoutExpired:
            raise AssertionError(f"it did not end within {within_s:g} s:\n{self.log_tail()}") from None

    def stop(self, within_s: float = PATIENCE_S) -> int:
        """SIGTERM, and its exit code."""
        self.signal(signal.SIGTERM)
        return self.wait(within_s)

    def kill(self) -> None:
        """SIGKILL: what a crash looks like."""
        self.signal(signal.SIGKILL)
        self.wait()

    def close(self) -> None:
        """The test is over: end it whatever it does."""
        if self._process is not None:
            self._process.kill()  # nothing where it has ended, be it just now
            self.wait()

    @property
    def log_text(self) -> str:
        """What it wrote, over all its starts."""
        return self.log_path.read_text(errors="replace") if self.log_path.exists() else ""

    def log_tail(self) -> str:
        """The end of its log, for the text of a failure."""
        return f"--- {self.log_path}\n{self.log_text[-TAIL_CHARS:]}"

    def lines(self, event: str = "", **fields: object) -> list[dict[str, Any]]:
        """The lines of its log with this event and these fields, oldest first."""
        texts = self.log_text.splitlines(keepends=True)
        named = json.dumps(event) if event else ""  # what does not name it need not be decoded
        whole = [text for text in texts if named in text and text.startswith("{") and text.endswith("\n")]
        decoded = [json.loads(text) for text in whole]
        return [line for line in decoded if event in ("", line["event"]) and fields.items() <= line.items()]

    def wait_line(self, event: str, within_s: float = PATIENCE_S, **fields: object) -> dict[str, Any]:
        """The first such line; AssertionError when it does not come or the process ends without."""

        def line() -> dict[str, Any] | None:
            ended = not self.running
            found = self.lines(event, **fields)
            assert found or not ended, f"it ended without {event} {fields}:\n{self.log_tail()}"
            return found[0] if found else None

        found = until(line, f"{event} {fields} in\n{self.log_tail()}", within_s)
        assert found is not None
        return found

    def assert_no_fault(self) -> None:
        """No trace, no bug, no warning of Python's and nothing undocumented in its log."""
        text = self.log_text
        faults = [fault for fault in FAULTS if fault in text]
        assert not faults, f"{faults} in {self.log_tail()}"
        assert not (unknown := undocumented(self.lines())), f"docs/logs.md does not have {set(unknown)}"


def name_of(process: psutil.Process) -> str:
    """The name of a process; blank for one that has ended meanwhile."""
    try:
        return process.name()
    except psutil.NoSuchProcess:
        return ""


def kill_all(processes: Iterable[psutil.Process]) -> None:
    """KILL these processes; some may have ended meanwhile."""
    for process in processes:
        with suppress(psutil.NoSuchProcess):
            process.kill()


def processes_of(mark: str) -> list[psutil.Process]:
    """All processes that have this text in their environment or command line, but ours."""
    found = []
    for process in psutil.process_iter():
        try:
            if process.pid == os.getpid() or process.status() == psutil.STATUS_ZOMBIE:
                continue
            words = [*process.cmdline(), *process.environ().values()]
        except psutil.Error:
            continue  # it has ended, or is another user's
        if any(mark in word for word in words):
            found.append(process)
    return found


def assert_none_left(processes: Callable[[], list[psutil.Process]]) -> None:
    """No process is left of what these were, but a ``sync`` of a record, which is waited for.

    A disk may take seconds for it, during which nobody can end it; the supervisor waits for none.
    """
    left = [process.cmdline() for process in processes() if not _is_sync(process)]
    assert not left, f"processes are left: {left}"
    until(lambda: not processes(), "a sync of a record has ended")


def _is_sync(process: psutil.Process) -> bool:
    try:
        return "--data" in process.cmdline()
    except psutil.Error:  # it has ended
        return True
