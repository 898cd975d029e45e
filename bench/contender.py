"""A process that contends for a lock, started and stopped in one way, so that only the contenders differ."""

import os
import signal
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

STOP_S = 20.0


class Contender:
    """One process, which may be started again after its end. Leaving its ``with`` kills it."""

    def __init__(
        self, name: str, argv: Sequence[str], environ: Mapping[str, str], folder: Path, log_path: Path
    ) -> None:
        self.name = name
        self._argv = ["setpriv", "--pdeathsig", "KILL", *argv]
        self._environ = environ
        self._folder = folder
        self._log_path = log_path
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._process is not None:
            os.killpg(self._process.pid, signal.SIGKILL)  # the group, because `consul lock` has a child
            self._process.wait()

    @property
    def pid(self) -> int:
        """The process id."""
        assert self._process is not None, f"{self.name} is not running"
        return self._process.pid

    @property
    def cpu_s(self) -> float:
        """The user and system time of all threads so far, without children."""
        stat = Path(f"/proc/{self.pid}/stat").read_text()
        fields = stat.rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def start(self) -> None:
        """Start the process, with its output in its log."""
        assert self._process is None, f"{self.name} is running"
        with self._log_path.open("ab") as log:
            self._process = subprocess.Popen(
                self._argv,
                cwd=self._folder,
                env=self._environ,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    def terminate(self) -> None:
        """Send SIGTERM, as systemd or an operator would."""
        os.kill(self.pid, signal.SIGTERM)

    def wait_gone(self) -> None:
        """Wait for the end of the process. Raises RuntimeError when it does not end with 0 in time."""
        assert self._process is not None
        try:
            code = self._process.wait(STOP_S)
        except subprocess.TimeoutExpired:
            raise RuntimeError(f"{self.name} did not end within {STOP_S:g} s of SIGTERM") from None
        self._process = None
        if code != 0:
            raise RuntimeError(f"{self.name} ended with {code}")
