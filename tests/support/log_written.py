"""A log in memory, with a clock that the test sets."""

import json
import os
from typing import Any

from supervisor.adapters.filesystem.writing import NonBlockingWriter
from supervisor.reporting.telemetry.facts import Facts
from supervisor.reporting.telemetry.log import Level, Log


class Written:
    """A log and all that was written to it. ``on_step`` takes note of a step. Options: those of ``Log``."""

    def __init__(self, level: Level = "debug", form: str = "json", **options: Any) -> None:
        self.now = 0.0
        self._file = os.fdopen(os.memfd_create("log"), "rb")
        self.log = Log(level, form, lambda: self.now, NonBlockingWriter(self._file.fileno()), **options)
        self.on_step = Facts(lambda: self.now, self.log.on_step).on_step

    def __del__(self) -> None:
        self._file.close()

    @property
    def text(self) -> str:
        fd = self._file.fileno()
        return os.pread(fd, os.fstat(fd).st_size, 0).decode()

    def lines(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.text.splitlines()]

    def events(self) -> list[str]:
        return [line["event"] for line in self.lines()]
