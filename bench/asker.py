"""The compiled clients that send HTTP requests to a daemon, at a steady rate and for little CPU time."""

import subprocess
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

END_S = 5.0


@dataclass(frozen=True, slots=True)
class Asked:
    """The result of one run: the number of answers, their times, and the CPU time of the clients."""

    answers: int
    mean_ms: float
    worst_ms: float
    cpu_s: float


class Asker:
    """The clients of ask.c: ``with Asker(program, port, "/v1/status", 200) as asker:``, until ``finish``."""

    def __init__(self, program: Path, port: int, target: str, a_second: int) -> None:
        self._argv = ["setpriv", "--pdeathsig", "KILL", str(program), str(port), target, str(a_second)]

    def __enter__(self) -> Self:
        self._process = subprocess.Popen(
            self._argv,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with self._process:  # closes the pipes and waits for the process
            self._process.kill()

    def finish(self) -> Asked:
        """End the clients and return the result. Raises RuntimeError when a request got no good answer."""
        self._process.terminate()
        said, complaint = self._process.communicate(timeout=END_S)
        if self._process.returncode != 0:
            raise RuntimeError(complaint.strip() or f"the asking ended with {self._process.returncode}")
        answers, mean_us, worst_us, cpu_us = map(int, said.split())
        return Asked(answers, mean_us / 1e3, worst_us / 1e3, cpu_us / 1e6)
