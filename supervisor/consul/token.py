"""Consul's ACL token: from the settings, or from a file that is read again when it changes.

The token must never appear in a log line, an error or a repr: this object has none of its own. A file
that lies on no disk of this machine is read by a child, because its file system may not answer.
"""

import os
import re
import stat
import time
from collections.abc import Callable

from supervisor.config import ConsulSettings
from supervisor.errors import OperatorError
from supervisor.filesystem.children import WITHIN_S, NoAnswer
from supervisor.filesystem.mounts import is_local
from supervisor.filesystem.reading import FileReader, read_within

LOOK_EVERY_S = 1.0  # at a file that is read by a child; any other is looked at for each request
TOKEN_BYTES_MAX = 4096  # a UUID has 36; anything longer than this is another file
_SENDABLE = re.compile(rb"[\x21-\x7e]+")  # what a header can carry, without blanks


class TokenError(OperatorError):
    """The token file cannot be used; the text names the file and the remedy, never its content."""


class Token:
    """The token to send. ``warn`` is called once for each new fault of the file, ``renewed`` when a
    token was read from it that is another than before, or after a fault."""

    def __init__(
        self,
        settings: ConsulSettings,
        warn: Callable[[str], None] = lambda text: None,
        renewed: Callable[[str], None] = lambda text: None,
        *,
        patient: bool = False,
    ) -> None:
        """Raises TokenError when the file cannot be used at the start; not if its file system does not
        answer and we are ``patient``: then there is no token until it does."""
        self._path = settings.token_file
        self._warn = warn
        self._renewed = renewed
        self._value = settings.token
        self._stamp: tuple[int, int, int] | None = None
        self._fault = ""
        self._reader: FileReader | None = None
        self._looked_at = -LOOK_EVERY_S
        if self._path is not None:
            self._begin(self._path, patient)

    def _begin(self, path: str, patient: bool) -> None:
        if is_local(path):
            self._refresh(path)
            return
        self._looked_at = time.monotonic()
        try:
            self._take(path, read_within(path, TOKEN_BYTES_MAX + 1))
        except OSError as error:
            fault = _unreadable(path, error)
            if not (patient and isinstance(error, NoAnswer)):
                raise fault from None
            self._fault = str(fault)
            self._warn(f"{fault}; Consul is asked without a token until it does")

    def change(self, settings: ConsulSettings) -> None:
        """By these settings from now on. Raises TokenError when their file cannot be used: then nothing
        changes."""
        changed = Token(settings, self._warn)
        self.close()
        self._path, self._value, self._stamp = changed._path, changed._value, changed._stamp
        self._fault = ""

    def close(self) -> None:
        """Nobody waits for its file any more."""
        if self._reader is not None:
            self._reader.close()
        self._reader = None

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
            if self._reader is not None or not is_local(path):
                if not self._look(path):
                    return
            else:
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
            found = os.stat(path)
            # ctime, for a tool that copies into the file may set its mtime back (cp -p, rsync -t).
            stamp = (found.st_ctime_ns, found.st_ino, found.st_size)
            if stamp == self._stamp:
                return
            if not stat.S_ISREG(found.st_mode):
                raise TokenError(f"cannot use the token file {path}: it is no regular file")
            with open(path, "rb") as file:
                raw = file.read(TOKEN_BYTES_MAX + 1)
        except OSError as error:
            raise _unreadable(path, error) from None
        self._take(path, raw)
        self._stamp = stamp

    def _look(self, path: str) -> bool:
        """By a child, of which there is one at most: whether it has read the file. Raises TokenError."""
        now = time.monotonic()
        try:
            if self._reader is None:
                if now < self._looked_at + LOOK_EVERY_S:
                    return False
                self._looked_at = now
                self._reader = FileReader(path, TOKEN_BYTES_MAX + 1)
            if not self._reader.ended:
                if now > self._looked_at + WITHIN_S:
                    raise NoAnswer(path)
                return False
            try:
                raw = self._reader.content()
            finally:
                self.close()
        except OSError as error:
            raise _unreadable(path, error) from None
        self._take(path, raw)
        return True

    def _take(self, path: str, raw: bytes) -> None:
        token = raw.strip()
        if len(raw) > TOKEN_BYTES_MAX or not _SENDABLE.fullmatch(token):
            raise TokenError(f"cannot use the token file {path}: it must hold one token and nothing else")
        self._value = token.decode()


def _unreadable(path: str, error: OSError) -> TokenError:
    return TokenError(f"cannot read the token file {path}: {error.strerror}")
