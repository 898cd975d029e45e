"""A process on a node of the network: started, signalled, ended; its output goes to a file."""

import os
import signal
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

STOP_S = 30.0  # a client agent's leave takes 5 s, on_lose and release of a supervisor up to 10 s


class Process:
    """``argv`` is the whole command line; it may be started again once it has ended."""

    def __init__(self, argv: Sequence[str], log_path: Path, environ: Mapping[str, str]) -> None:
        self._argv = argv
        self._environ = {"PATH": os.environ["PATH"], **environ}
        self.log_path = log_path
        self._child: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start it (again); its log goes on in the same file."""
        assert not self.running, "it is running"
        with self.log_path.open("ab") as log:
            self._child = subprocess.Popen(
                self._argv,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env=self._environ,
                start_new_session=True,  # Ctrl-C is for the program that started it
            )

    @property
    def running(self) -> bool:
        """Whether it was started and has not ended."""
        return self._child is not None and self._child.poll() is None

    @property
    def exit_code(self) -> int | None:
        """Of the last one that ended; negative for a signal."""
        return None if self._child is None else self._child.poll()

    def signal(self, number: signal.Signals) -> None:
        """Send it a signal."""
        assert self._child is not None and self.running, "it is running"
        os.kill(self._child.pid, number)

    def kill(self) -> None:
        """kill -9, and its end."""
        self.signal(signal.SIGKILL)
        self.wait()

    def stop(self) -> int:
        """SIGTERM, and its exit code."""
        self.signal(signal.SIGTERM)
        return self.wait()

    def wait(self) -> int:
        """Its exit code once it has ended; TimeoutError when it does not end."""
        assert self._child is not None, "it was started"
        try:
            return self._child.wait(STOP_S)
        except subprocess.TimeoutExpired:
            raise TimeoutError(f"{self.log_path.stem} did not end within {STOP_S:g} s") from None
