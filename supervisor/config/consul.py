"""Resolves how to reach Consul, by the file's section ``consul`` or else by Consul's own variables.

The variables have the meaning that Consul's command line gives them. An empty variable counts as unset.
"""

import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

from supervisor.config.formats.durations import parse_duration
from supervisor.config.problems import Position, Positions, Report
from supervisor.config.schema import Defaults, document
from supervisor.config.settings import ConsulSettings
from supervisor.core.settings import Tls

_TRUE = ("1", "t", "T", "TRUE", "true", "True")  # as Go's strconv.ParseBool
_FALSE = ("0", "f", "F", "FALSE", "false", "False")
_TOKEN = re.compile(r"[\x21-\x7e]{1,4096}")
_SOCKET_PATH_BYTES_MAX = 107  # sockaddr_un


class _Resolver:
    """Looks up each setting in the file, then in the environment, and reports problems at their position."""

    def __init__(
        self, section: dict[str, Any], defaults: Defaults, environ: Mapping[str, str], report: Report
    ) -> None:
        self._section, self._tls = section, section.get("tls", {})
        self._defaults, self._environ, self._report = defaults, environ, report

    def settings(self) -> ConsulSettings:
        token, token_file = self._tokens()
        address, tls = self._address(), self._tls_settings()
        if self._tls and not address.startswith("https://"):
            message = "cannot be used with this address: begin it with https://"
            self._report.refuse(("consul", "tls"), message)
        if not tls.verify and address.startswith("https://"):
            harm = "anyone on the network path can read and change everything"
            self._report.warn(("consul", "tls", "verify"), f"Consul's certificate is not verified: {harm}")
        return ConsulSettings(
            address=address,
            token=token,
            token_file=token_file,
            datacenter=self._section.get("datacenter"),
            namespace=self._section.get("namespace") or self._variable("CONSUL_NAMESPACE"),
            partition=self._section.get("partition") or self._variable("CONSUL_PARTITION"),
            tls=tls,
            http_auth=self._variable("CONSUL_HTTP_AUTH"),
            leader_change_s=leader_change_s(self._section, self._defaults),
        )

    def _tokens(self) -> tuple[str | None, str | None]:
        if "token" in self._section or "token_file" in self._section:
            return self._section.get("token"), self._section.get("token_file")
        if token_file := self._variable("CONSUL_HTTP_TOKEN_FILE"):
            return None, token_file
        token = self._variable("CONSUL_HTTP_TOKEN")
        if token and not _TOKEN.fullmatch(token):
            self._refuse_variable("CONSUL_HTTP_TOKEN", "cannot be sent: it has spaces or control characters")
        return token, None

    def _address(self) -> str:
        if "address" in self._section:
            address, why = _checked_address(self._section["address"])
            if why:
                self._report.refuse(("consul", "address"), why)
            return address
        given, default = self._variable("CONSUL_HTTP_ADDR"), str(self._defaults.of("consul")["address"])
        if given is None and not self._flag("CONSUL_HTTP_SSL", False):
            return default
        address, why = _checked_address(self._with_scheme(given or default))
        if why:
            self._refuse_variable("CONSUL_HTTP_ADDR", why)
        return address

    def _with_scheme(self, address: str) -> str:
        """Add the scheme as Consul's command line does: to HOST:PORT, and https for CONSUL_HTTP_SSL."""
        scheme, separator, rest = address.partition("://")
        if address.startswith("/"):
            return address
        if not separator:
            scheme, rest = "http", address
        if rest.startswith(":"):
            rest = f"127.0.0.1{rest}"
        secure = scheme == "http" and self._flag("CONSUL_HTTP_SSL", False)
        return f"{'https' if secure else scheme}://{rest}"

    def _tls_settings(self) -> Tls:
        cert_file = self._tls.get("cert_file") or self._variable("CONSUL_CLIENT_CERT")
        key_file = self._tls.get("key_file") or self._variable("CONSUL_CLIENT_KEY")
        if bool(cert_file) != bool(key_file):
            given, other = ("CERT", "KEY") if cert_file else ("KEY", "CERT")
            why = f"cannot be used without CONSUL_CLIENT_{other}: set both or none"
            self._refuse_variable(f"CONSUL_CLIENT_{given}", why)
        verify, usual = self._tls.get("verify"), bool(self._defaults.of("tls")["verify"])
        ca_file = self._tls.get("ca_file") or self._variable("CONSUL_CACERT")
        return Tls(
            ca_file=ca_file,
            ca_path=None if ca_file else self._variable("CONSUL_CAPATH"),
            cert_file=cert_file,
            key_file=key_file,
            server_name=self._tls.get("server_name") or self._variable("CONSUL_TLS_SERVER_NAME"),
            verify=self._flag("CONSUL_HTTP_SSL_VERIFY", usual) if verify is None else verify,
        )

    def _variable(self, name: str) -> str | None:
        return self._environ.get(name) or None

    def _flag(self, name: str, default: bool) -> bool:
        text = self._variable(name)
        if text is not None and text not in _TRUE + _FALSE:
            self._refuse_variable(name, "cannot be read: must be true or false")
        return default if text is None else text in _TRUE

    def _refuse_variable(self, name: str, message: str) -> None:
        self._report.refuse_at(Position("environment", 0, 0), (name,), message)


def leader_change_s(section: dict[str, Any], defaults: Defaults) -> float:
    """Return how long a change of the leader of Consul's servers takes, by a section that may be empty."""
    return parse_duration({**defaults.of("consul"), **section}["leader_change"])


def resolve(
    section: dict[str, Any], defaults: Defaults, environ: Mapping[str, str], report: Report
) -> ConsulSettings:
    """Return the settings of a ``consul`` section that the schema has accepted, and report their faults."""
    return _Resolver(section, defaults, environ, report).settings()


def from_environment(environ: Mapping[str, str]) -> ConsulSettings:
    """Return the settings of the environment alone. Raises ConfigError when a variable cannot be used."""
    report = Report(Positions("environment"))
    settings = resolve({}, Defaults(document()), environ, report)
    report.raise_if_any()
    return settings


def _checked_address(address: str) -> tuple[str, str]:
    """Return the address without a final slash, and why it cannot be used, which never shows it."""
    if address.startswith("/"):
        return address, "cannot be reached: put unix:// before a socket's path, as in unix:///run/consul.sock"
    if address.startswith("unix://"):
        path = address.removeprefix("unix://")
        if not path.startswith("/") or "\0" in path:
            return (
                address,
                "cannot be reached: a socket's path is absolute, as in unix:///run/consul/http.sock",
            )
        if len(path.encode("utf-8", "replace")) > _SOCKET_PATH_BYTES_MAX:
            return address, f"cannot be reached: a socket's path has at most {_SOCKET_PATH_BYTES_MAX} bytes"
        return address, ""
    why = url_fault(address, "set CONSUL_HTTP_AUTH to USER:PASSWORD")
    if not why and ("?" in address or address.rstrip("/").count("/") > 2):
        why = "cannot have a path: write http://HOST:PORT or https://HOST:PORT alone"
    return address.rstrip("/"), why


def url_fault(url: str, with_password: str) -> str:
    """Return why a URL cannot be requested, without showing the URL. Blank: it can be requested.

    with_password: the remedy for a URL that holds a user or password.
    """
    if not re.fullmatch(r"https?://[\x21-\x7e]+", url):
        return "cannot be requested: must begin with http:// or https:// and be ASCII without spaces"
    try:
        parts = urlsplit(url)
        if not parts.hostname or parts.port == 0:
            return "cannot be requested: it names no host, or port 0"
    except ValueError:
        return "cannot be requested: its host or port is invalid, a port is from 1 to 65535"
    if "@" in parts.netloc:
        return f"cannot hold a user or password: {with_password}"
    if "#" in url or "\\" in url:
        return "cannot hold # or \\: they are not sent, remove them"
    return ""
