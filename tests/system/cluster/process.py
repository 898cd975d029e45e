"""A process on a node of the network, which a fault may end and start again."""

import os
import signal
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from tests.support.program import Program

STOP_S = 30.0  # a client agent leaves in 5 s, a supervisor needs up to 10 s for on_lose and release


class Process(Program):
    """A process that may be started again when it has ended; ``argv`` is the whole command line."""

    def __init__(self, argv: Sequence[str], log_path: Path, environ: Mapping[str, str]) -> None:
        super().__init__(argv, log_path, {"PATH": os.environ["PATH"], **environ})

    @property
    def exit_code(self) -> int | None:
        """The exit code of the process that ended last; negative for a signal."""
        return None if self._process is None else self._process.poll()

    def signal(self, number: signal.Signals) -> None:
        assert self._process is not None and self.running, "it is running"
        os.kill(self._process.pid, number)

    def kill(self) -> None:
        """Kill the process with kill -9 and wait for its end."""
        self.signal(signal.SIGKILL)
        self.wait()

    def stop(self) -> int:
        """End the process with SIGTERM and return its exit code."""
        self.signal(signal.SIGTERM)
        return self.wait()

    def wait(self) -> int:
        """Wait until the process ends and return its exit code; raise TimeoutError when it goes on."""
        assert self._process is not None, "it was started"
        try:
            return self._process.wait(STOP_S)
        except subprocess.TimeoutExpired:
            raise TimeoutError(f"{self.log_path.stem} did not end within {STOP_S:g} s") from None
