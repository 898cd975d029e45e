"""The settings of a configuration. Those of its items are in ``supervisor.core.settings``."""

from dataclasses import dataclass, field
from typing import Literal

from supervisor.config.problems import Places, Problem
from supervisor.core.settings import ItemSettings, Tls


@dataclass(frozen=True, slots=True)
class ConsulSettings:
    """How to reach Consul."""

    address: str  # ``http(s)://HOST[:PORT]`` or ``unix:///PATH``
    # The ACL token. None: no token, or ``token_file`` is set.
    token: str | None = field(default=None, repr=False)
    token_file: str | None = None  # the file that holds the token, and is read again when it changes
    # Sent with each request. None: Consul's default.
    datacenter: str | None = None
    namespace: str | None = None
    partition: str | None = None
    tls: Tls = Tls()  # how Consul's certificate is verified, and which certificate the supervisor presents
    # ``USER`` or ``USER:PASSWORD`` for a proxy in front of Consul.
    http_auth: str | None = field(default=None, repr=False)
    # How long a change of the leader of Consul's servers takes. No request depends on it.
    leader_change_s: float = 14.0


@dataclass(frozen=True, slots=True)
class LogSettings:
    """The lowest level that is logged, and the format of the log."""

    level: Literal["debug", "info", "warning", "error"] = "info"
    format: Literal["auto", "console", "json", "journal"] = "auto"


@dataclass(frozen=True, slots=True)
class ControlSettings:
    """Where commands reach the daemon."""

    path: str  # the unix socket
    # The group whose members may send commands, beside root and the daemon's own user. None: no group.
    group: str | None = None
    configured: bool = False  # whether the file names the socket, and not systemd or the default


@dataclass(frozen=True, slots=True)
class HttpSettings:
    """Where the daemon listens over TCP."""

    host: str  # a literal address, without brackets
    port: int  # 0 lets the system choose a port

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


@dataclass(frozen=True, slots=True)
class Config:
    """A configuration without a fault."""

    consul: ConsulSettings
    log: LogSettings
    items: tuple[ItemSettings, ...]
    state_dir: str
    # Consequences that the operator should know, although the configuration can be used.
    warnings: tuple[Problem, ...] = ()
    # The variables that hold secrets of the supervisor, which hooks must not inherit.
    withheld: frozenset[str] = frozenset()
    # None: the daemon takes no commands, because no file says who may send them.
    control: ControlSettings | None = None
    http: HttpSettings | None = None  # None: the daemon does not listen over TCP
    # Where each key and value is in the files. None: not needed any more.
    places: Places | None = field(default=None, compare=False, repr=False)
