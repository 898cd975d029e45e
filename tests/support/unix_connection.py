"""HTTP over a unix socket."""

import http.client
import socket
from pathlib import Path


class UnixConnection(http.client.HTTPConnection):
    """A connection to the server that listens on the socket of this path."""

    def __init__(self, path: Path, timeout_s: float) -> None:
        super().__init__("localhost", timeout=timeout_s)
        self._path = path

    def connect(self) -> None:
        """Connect. Raises OSError."""
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(self.timeout)
        try:
            self.sock.connect(str(self._path))
        except OSError:
            self.sock.close()
            raise
