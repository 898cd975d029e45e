"""Consul's ACL token: from the settings, or from a file that is read again when it changes.

The token must never appear in a log line, an error or a repr: this object has none of its own.
"""

import os
import re
import stat
from collections.abc import Callable

from supervisor.config import ConsulSettings

TOKEN_BYTES_MAX = 4096  # a UUID has 36; anything longer than this is another file
_SENDABLE = re.compile(rb"[\x21-\x7e]+")  # what a header can carry, without blanks


class TokenError(Exception):
    """The token file cannot be used; the text names the file and the remedy, never its content."""


class Token:
    """The token to send. ``warn`` is called once for each new fault of the file, ``renewed`` when a
    token was read from it that is another than before, or after a fault."""

    def __init__(
        self,
        settings: ConsulSettings,
        warn: Callable[[str], None] = lambda text: None,
        renewed: Callable[[str], None] = lambda text: None,
    ) -> None:
        """Raises TokenError when the file cannot be used at the start."""
        self._path = settings.token_file
        self._warn = warn
        self._renewed = renewed
        self._value = settings.token
        self._stamp: tuple[int, int, int] | None = None
        self._fault = ""
        if self._path is not None:
            self._refresh(self._path)

    def change(self, settings: ConsulSettings) -> None:
        """By these settings from now on. Raises TokenError when their file cannot be used: then nothing
        changes."""
        changed = Token(settings, self._warn)
        self._path, self._value, self._stamp = changed._path, changed._value, changed._stamp
        self._fault = ""

    @property
    def called(self) -> str:
        """How errors name it."""
        if self._path is not None:
            return f"the token in {self._path}"
        return "the token" if self._value is not None else "the anonymous token, for none is set,"

    def value(self) -> str | None:
        """The token as of now; the last good one while its file cannot be read."""
        if self._path is not None:
            self._follow(self._path)
        return self._value

    def _follow(self, path: str) -> None:
        former = self._value
        try:
            self._refresh(path)
        except TokenError as error:
            if str(error) != self._fault:
                self._fault = str(error)
                self._warn(f"{error}; the last token read stays in use")
            return
        if self._fault or self._value != former:
            self._fault = ""
            self._renewed(f"the token in {path} is in use from now on")

    def _refresh(self, path: str) -> None:
        try:
            status = os.stat(path)
            # ctime, for a tool that copies into the file may set its mtime back (cp -p, rsync -t).
            stamp = (status.st_ctime_ns, status.st_ino, status.st_size)
            if stamp == self._stamp:
                return
            if not stat.S_ISREG(status.st_mode):
                raise TokenError(f"cannot use the token file {path}: it is no regular file")
            with open(path, "rb") as file:
                raw = file.read(TOKEN_BYTES_MAX + 1)
        except OSError as error:
            raise TokenError(f"cannot read the token file {path}: {error.strerror}") from None
        token = raw.strip()
        if len(raw) > TOKEN_BYTES_MAX or not _SENDABLE.fullmatch(token):
            raise TokenError(f"cannot use the token file {path}: it must hold one token and nothing else")
        self._value, self._stamp = token.decode(), stamp
