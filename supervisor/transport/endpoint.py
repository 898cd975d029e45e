"""Where to connect, read from a URL.

Nothing here connects, resolves or reads a file. What a URL may carry in secret (user, path,
query) is dropped: it belongs to the requests, not to the place they are sent to.
"""

import re
from dataclasses import dataclass
from typing import Literal
from urllib.parse import urlsplit

import requests

from supervisor.core.settings import Tls

PORTS = {"http": 80, "https": 443}
HOST = re.compile(r"[A-Za-z0-9_]([A-Za-z0-9_.-]{0,251}[A-Za-z0-9_.])?|[0-9A-Fa-f:.]+(%[A-Za-z0-9_.-]+)?")
UNIX_PATH_BYTES_MAX = 107  # sockaddr_un.sun_path with its final NUL


@dataclass(frozen=True, slots=True)
class Endpoint:
    """One place that requests are sent to. ``path`` is that of a unix socket, else empty."""

    scheme: Literal["http", "https", "unix"]
    host: str
    port: int
    path: str
    tls: Tls

    @classmethod
    def of(cls, url: str, tls: Tls) -> "Endpoint":
        """The endpoint of ``http://host[:port]``, ``https://host[:port]`` or ``unix:///path``.

        User, path and query of an http URL are not part of it. Raises ValueError with one line
        that does not repeat the URL: it may hold a secret.
        """
        scheme, separator, rest = url.partition("://")
        if tls.server_name is not None and not HOST.fullmatch(tls.server_name):
            raise ValueError("server_name is no name and no address")
        match (scheme.lower(), separator):
            case ("unix", "://"):
                return cls("unix", "localhost", 0, _socket_path(rest), tls)
            case ("http" | "https" as known, "://"):
                host, port = _host_and_port(url, PORTS[known])
                return cls(known, host, port, "", tls)
        raise ValueError("it must begin with http://, https:// or unix://")

    @property
    def base_url(self) -> str:
        """What the URL of a request to this endpoint begins with; no slash at its end."""
        if self.scheme == "unix":
            return "http://localhost"
        return f"{self.scheme}://{self._netloc}"

    @property
    def peer(self) -> str:
        """How logs and errors name it."""
        return self.path if self.scheme == "unix" else self._netloc

    @property
    def server_name(self) -> str:
        """The name that the peer's certificate must bear."""
        return self.tls.server_name or self.host

    @property
    def _netloc(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


def _socket_path(path: str) -> str:
    if not path.startswith("/"):
        raise ValueError("unix:// needs an absolute path, as in unix:///run/consul/http.sock")
    if "\0" in path or len(path.encode()) > UNIX_PATH_BYTES_MAX:
        raise ValueError(f"the path of a unix socket has at most {UNIX_PATH_BYTES_MAX} bytes")
    return path


def _host_and_port(url: str, default_port: int) -> tuple[str, int]:
    try:
        # requests makes an international name its ASCII form, exactly as it does in the requests.
        parts = urlsplit(requests.Request("GET", url).prepare().url or "")
        host, port = (parts.hostname or "").replace("%25", "%"), parts.port
    except (ValueError, requests.RequestException):
        raise ValueError("it is not a URL with a host and a port from 1 to 65535") from None
    if not HOST.fullmatch(host):
        raise ValueError("its host is no name and no address")
    return host, port or default_port
