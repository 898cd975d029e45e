"""Consul's ACL token: from the settings, or from a file that is read again when it changes.

The token must never appear in a log line, an error or a repr. A child reads a file that lies on no disk of
this machine, because its file system may not answer.
"""

import os
import re
import stat
import time
from collections.abc import Callable

from supervisor.adapters.filesystem.children import WITHIN_S, NoAnswer
from supervisor.adapters.filesystem.mounts import is_local
from supervisor.adapters.filesystem.reading import FileReader, read_within
from supervisor.config import ConsulSettings
from supervisor.errors import OperatorError

READ_EVERY_S = 1.0  # by a child; a file on a local disk is checked for each request
OWN = "CONSUL_HTTP_TOKEN"  # of whoever runs a command
TOKEN_BYTES_MAX = 4096  # a UUID has 36, so a longer file is no token file
_SENDABLE = re.compile(rb"[\x21-\x7e]+")  # the bytes that a header can carry, without blanks


class TokenError(OperatorError):
    """A token file that cannot be used; the text names the file and the fault, never the content."""


class TokenHangs(TokenError):
    """A token file whose file system does not answer."""


class Token:
    """The token to send."""

    def __init__(
        self,
        settings: ConsulSettings,
        warn: Callable[[str], None] = lambda text: None,
        renewed: Callable[[str], None] = lambda text: None,
        *,
        forgiven: type[TokenError] | tuple[()] = (),
    ) -> None:
        """Read the token file, if the settings name one. Raises TokenError when it cannot be used.

        forgiven: the faults with which to begin without a token, until the file is good.
        """
        self._path = settings.token_file
        self._warn = warn  # called once for each new fault of the file
        self._renewed = renewed  # called when the file has a token again after a fault, or a new one
        self._value = settings.token
        self._stamp: tuple[int, int, int] | None = None
        self._fault = ""
        self._reader: FileReader | None = None
        self._read_at = -READ_EVERY_S
        if self._path is not None:
            try:
                self._begin(self._path)
            except forgiven as fault:
                self._fault = str(fault)
                self._warn(f"{fault}; requests carry no token until the file is good")

    def _begin(self, path: str) -> None:
        if is_local(path):
            self._refresh(path)
            return
        self._read_at = time.monotonic()
        try:
            raw = read_within(path, TOKEN_BYTES_MAX + 1)
        except OSError as error:
            raise _unreadable(path, error) from None
        self._take(path, raw)

    def change(self, settings: ConsulSettings) -> None:
        """Follow these settings from now on. Raises TokenError, and changes nothing, for an unusable file."""
        changed = Token(settings, self._warn)
        self.close()
        self._path, self._value, self._stamp = changed._path, changed._value, changed._stamp
        self._fault = ""

    def close(self) -> None:
        """End a read of the token file that is under way."""
        if self._reader is not None:
            self._reader.close()
        self._reader = None

    @property
    def called(self) -> str:
        """The name of the token in errors."""
        if self._path is not None:
            return f"the token in {self._path}"
        if self._value is None:
            return "the anonymous token, because none is set,"
        return f"the token in {OWN if os.environ.get(OWN) == self._value else 'consul.token'}"

    def value(self) -> str | None:
        """Return the token as of now. While its file cannot be read, this is the last good token."""
        if self._path is not None:
            self._follow(self._path)
        return self._value

    def _follow(self, path: str) -> None:
        former = self._value
        try:
            if self._reader is not None or not is_local(path):
                if not self._read_by_child(path):
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
            # ctime, because a tool that copies into the file may set its mtime back (cp -p, rsync -t).
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

    def _read_by_child(self, path: str) -> bool:
        """Return whether a child has read the file; at most one child reads at a time. Raises TokenError."""
        now = time.monotonic()
        try:
            if self._reader is None:
                if now < self._read_at + READ_EVERY_S:
                    return False
                self._read_at = now
                self._reader = FileReader(path, TOKEN_BYTES_MAX + 1)
            if not self._reader.ended:
                if now > self._read_at + WITHIN_S:
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
    kind = TokenHangs if isinstance(error, NoAnswer) else TokenError
    return kind(f"cannot read the token file {path}: {error.strerror}")
