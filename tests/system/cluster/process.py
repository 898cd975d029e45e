"""A process on a node of the network, whose output goes to a file."""

import os
import signal
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

STOP_S = 30.0  # a client agent leaves in 5 s, a supervisor needs up to 10 s for on_lose and release


class Process:
    """A process that may be started again when it has ended; ``argv`` is the whole command line."""

    def __init__(self, argv: Sequence[str], log_path: Path, environ: Mapping[str, str]) -> None:
        self._argv = argv
        self._environ = {"PATH": os.environ["PATH"], **environ}
        self.log_path = log_path
        self._child: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start the process, also once more; each start appends to one log."""
        assert not self.running, "it is running"
        with self.log_path.open("ab") as log:
            self._child = subprocess.Popen(
                self._argv,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env=self._environ,
                start_new_session=True,  # Ctrl-C must reach only the program that has started it
            )

    @property
    def running(self) -> bool:
        """Whether it was started and has not ended."""
        return self._child is not None and self._child.poll() is None

    @property
    def exit_code(self) -> int | None:
        """The exit code of the process that ended last; negative for a signal."""
        return None if self._child is None else self._child.poll()

    def signal(self, number: signal.Signals) -> None:
        """Send a signal to the process."""
        assert self._child is not None and self.running, "it is running"
        os.kill(self._child.pid, number)

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
        assert self._child is not None, "it was started"
        try:
            return self._child.wait(STOP_S)
        except subprocess.TimeoutExpired:
            raise TimeoutError(f"{self.log_path.stem} did not end within {STOP_S:g} s") from None
