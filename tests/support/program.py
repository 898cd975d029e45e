"""A program beside a test, in the foreground: it dies with the test, and its output goes to a file."""

import os
import signal
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Self

from tests.support.patience import PATIENCE_S
from tests.support.supervisor import until

STOP_S = 30.0  # a client agent leaves in 5 s, a supervisor needs up to 10 s for on_lose and release


class Program:
    """A program that may be started again when it has ended; each start appends to one log.

    environ: all of its variables. None: ours.
    """

    def __init__(
        self,
        argv: Sequence[str],
        log_path: Path,
        environ: Mapping[str, str] | None = None,
        cwd: Path | None = None,
    ) -> None:
        log_path.parent.mkdir(parents=True, exist_ok=True)
        self.log_path = log_path
        self._argv = ["setpriv", "--pdeathsig", "KILL", *argv]
        self._environ = environ
        self._cwd = cwd
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *error: object) -> None:
        self.kill()

    def start(self) -> None:
        assert not self.running, f"{self._argv} is running"
        with self.log_path.open("ab") as log:
            self._process = subprocess.Popen(
                self._argv,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd=self._cwd,
                env=self._environ,
                start_new_session=True,  # Ctrl-C must reach only the program that has started it
            )
        until(self._is_ready, f"{self._argv} is ready", log=lambda: self.log)

    def _is_ready(self) -> bool:
        """Return whether others may use it by now."""
        return True

    @property
    def running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    @property
    def log(self) -> str:
        return self.log_path.read_text(errors="replace") if self.log_path.exists() else ""

    def signal(self, number: signal.Signals) -> None:
        assert self._process is not None and self.running, "it is running"
        os.kill(self._process.pid, number)

    def stop(self) -> int:
        self.signal(signal.SIGTERM)
        return self.wait()

    def wait(self) -> int:
        """Wait until it ends and return its exit code, negative for a signal; TimeoutError: it goes on."""
        assert self._process is not None, "it was started"
        try:
            return self._process.wait(STOP_S)
        except subprocess.TimeoutExpired:
            raise TimeoutError(f"{self.log_path.stem} did not end within {STOP_S:g} s") from None

    def kill(self) -> None:
        """Kill the program as if its machine had died, and wait for its end."""
        if self._process is not None:
            self._process.kill()
            self._process.wait(PATIENCE_S)
