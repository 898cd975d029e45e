"""The settings of a configuration. Those of its items are in ``supervisor.core.settings``."""

from dataclasses import field
from typing import Literal

from supervisor.config.problems import Places, Problem
from supervisor.core.frozen import dataclass
from supervisor.core.settings import ItemSettings, Tls


@dataclass(frozen=True, slots=True)
class ConsulSettings:
    """How to reach Consul.

    address: ``http(s)://HOST[:PORT]`` or ``unix:///PATH``.
    token: the ACL token. None: no token, or ``token_file`` is set.
    token_file: the file that holds the token, and is read again when it changes.
    datacenter, namespace, partition: sent with each request. None: Consul's default.
    tls: how Consul's certificate is verified, and which certificate the supervisor presents.
    http_auth: ``USER`` or ``USER:PASSWORD`` for a proxy in front of Consul.
    leader_change_s: how long a change of the leader of Consul's servers takes. No request depends on it.
    """

    address: str
    token: str | None = field(default=None, repr=False)
    token_file: str | None = None
    datacenter: str | None = None
    namespace: str | None = None
    partition: str | None = None
    tls: Tls = Tls()
    http_auth: str | None = field(default=None, repr=False)
    leader_change_s: float = 14.0


@dataclass(frozen=True, slots=True)
class LogSettings:
    """The lowest level that is logged, and the format of the log."""

    level: Literal["debug", "info", "warning", "error"] = "info"
    format: Literal["auto", "console", "json", "journal"] = "auto"


@dataclass(frozen=True, slots=True)
class ControlSettings:
    """Where commands reach the daemon.

    path: the unix socket.
    group: the group whose members may send commands, beside root and the daemon's own user. None: no group.
    configured: whether the file names the socket, and not systemd or the default.
    """

    path: str
    group: str | None = None
    configured: bool = False


@dataclass(frozen=True, slots=True)
class HttpSettings:
    """Where the daemon listens over TCP.

    host: a literal address, without brackets.
    port: 0 lets the system choose a port.
    """

    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


@dataclass(frozen=True, slots=True)
class Config:
    """A configuration without a fault.

    warnings: consequences that the operator should know, although the configuration can be used.
    withheld: the variables that hold secrets of the supervisor, which hooks must not inherit.
    control: None: the daemon takes no commands, because no file says who may send them.
    http: None: the daemon does not listen over TCP.
    places: where each key and value is in the files. None: not needed any more.
    """

    consul: ConsulSettings
    log: LogSettings
    items: tuple[ItemSettings, ...]
    state_dir: str
    warnings: tuple[Problem, ...] = ()
    withheld: frozenset[str] = frozenset()
    control: ControlSettings | None = None
    http: HttpSettings | None = None
    places: Places | None = field(default=None, compare=False, repr=False)
