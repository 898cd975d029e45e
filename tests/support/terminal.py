"""A pseudo-terminal in which a program runs, for tests that type and read as an operator does."""

import fcntl
import os
import re
import select
import struct
import subprocess
import termios
from collections.abc import Mapping, Sequence
from typing import Self

from tests.support.supervisor import COMMAND, ENVIRON, ROOT, until

COLOURS = re.compile(r"\x1b\[[0-9;]*m")


class Terminal:
    """A program in a terminal of this size.

    program: it gets the arguments.
    text: all that the program wrote and was read so far.
    """

    def __init__(
        self,
        *arguments: str,
        program: Sequence[str] = COMMAND,
        columns: int = 80,
        rows: int = 24,
        environ: Mapping[str, str] | None = None,
    ) -> None:
        self._ours, theirs = os.openpty()
        self._theirs = theirs
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
        self.text = ""
        # setsid makes this the session's terminal, so that Ctrl-C and resizes become signals
        self.process = subprocess.Popen(
            ["setpriv", "--pdeathsig", "KILL", "setsid", "--ctty", *program, *arguments],
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            cwd=ROOT,
            env={**ENVIRON, "TERM": "xterm", **(environ or {})},
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.process.kill()
        self.process.wait()
        os.close(self._theirs)
        os.close(self._ours)

    def type(self, keys: bytes) -> None:
        os.write(self._ours, keys)

    def read(self) -> str:
        while select.select([self._ours], [], [], 0)[0]:
            self.text += os.read(self._ours, 1 << 16).decode()
        return self.text

    def ended(self) -> int:
        """Wait for the end, read all that was written, and return the exit code."""

        def code() -> bool:
            self.read()
            return self.process.poll() is not None

        until(code, "the command ends")
        self.read()
        assert self.process.returncode is not None
        return self.process.returncode
