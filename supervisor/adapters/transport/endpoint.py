"""Where to connect, read from a URL.

Nothing here connects, resolves or reads a file. The parts of a URL that may be secret (user, path, query) are
dropped, because they belong to requests and not to the place where requests are sent.
"""

import re
from typing import Literal
from urllib.parse import urlsplit

import requests

from supervisor.core.frozen import dataclass
from supervisor.core.settings import Tls

PORTS = {"http": 80, "https": 443}
HOST = re.compile(r"[A-Za-z0-9_]([A-Za-z0-9_.-]{0,251}[A-Za-z0-9_.])?|[0-9A-Fa-f:.]+(%[A-Za-z0-9_.-]+)?")
UNIX_PATH_BYTES_MAX = 107  # sockaddr_un.sun_path with its final NUL


@dataclass(frozen=True, slots=True)
class Endpoint:
    """One place that requests are sent to."""

    scheme: Literal["http", "https", "unix"]  # "http", "https", or "unix" for HTTP over a unix socket
    host: str  # a name or a literal address
    port: int  # the TCP port. 0: a unix socket
    path: str  # the path of the unix socket. Blank: TCP
    tls: Tls  # the settings of TLS, which count for "https" only

    @classmethod
    def of(cls, url: str, tls: Tls) -> "Endpoint":
        """Return the endpoint of ``http://host[:port]``, ``https://host[:port]`` or ``unix:///path``.

        User, path and query of an http URL are ignored. Raises ValueError with one line that does not repeat
        the URL, because a URL may contain a secret.
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
        """The beginning of the URL of each request to this endpoint, without a slash at its end."""
        if self.scheme == "unix":
            return "http://localhost"
        return f"{self.scheme}://{self._netloc}"

    @property
    def peer(self) -> str:
        """The name of this endpoint in logs and errors."""
        return self.path if self.scheme == "unix" else self._netloc

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
        # requests turns an international name into ASCII, exactly as it does for each request.
        parts = urlsplit(requests.Request("GET", url).prepare().url or "")
        host, port = (parts.hostname or "").replace("%25", "%"), parts.port
    except (ValueError, requests.RequestException):
        raise ValueError("it is not a URL with a host and a port from 1 to 65535") from None
    if not HOST.fullmatch(host):
        raise ValueError("its host is no name and no address")
    return host, port or default_port
