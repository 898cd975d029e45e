"""Programs that are kept alive as systemd does it: each end is followed by a start one second later.

Nothing runs by itself here: every wait in this cluster calls ``look`` meanwhile.
"""

import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from tests.support.program import Program

RESTART_S = 1.0  # RestartSec of our unit


class Supervised(Program):
    """A process that is restarted; ``unexpected`` has the exit codes of ends that the test did not cause."""

    def __init__(self, argv: Sequence[str], log_path: Path, environ: Mapping[str, str]) -> None:
        super().__init__(argv, log_path, environ)
        self.unexpected: list[int] = []
        self._wanted = False
        self._killed = False
        self._ended_at: float | None = None

    def start(self) -> None:
        """Start the process, and again whenever it ends."""
        super().start()
        self._wanted, self._killed, self._ended_at = True, False, None

    def kill(self) -> None:
        """Kill the process with kill -9; ``look`` starts it again."""
        self._killed = True
        super().kill()

    def stop(self) -> int:
        """End the process with SIGTERM for good and return its exit code."""
        self._wanted = False
        return super().stop()

    def look(self) -> None:
        """Start the process again if it ended long enough ago."""
        if not self._wanted or self.running:
            return
        if self._ended_at is None:
            self._ended_at = time.monotonic()
            if not self._killed:
                self.unexpected.append(self.wait())
        elif time.monotonic() - self._ended_at >= RESTART_S:
            self.start()
