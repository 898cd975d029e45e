"""The settings of a configuration. Those of its items are in ``supervisor.core.settings``."""

from dataclasses import field
from typing import Literal

from supervisor.config.problems import Positions, Problem
from supervisor.core.frozen import dataclass
from supervisor.core.settings import ItemSettings, Tls


@dataclass(frozen=True, slots=True)
class ConsulSettings:
    """The way to Consul."""

    address: str  # ``http(s)://HOST[:PORT]`` or ``unix:///PATH``
    token: str | None = field(default=None, repr=False)  # None: no token, or ``token_file`` is set
    token_file: str | None = None  # the file that holds the token, and is read again when it changes
    datacenter: str | None = None  # sent with each request. None: Consul's default
    namespace: str | None = None
    partition: str | None = None
    tls: Tls = Tls()  # how Consul's certificate is verified, and which certificate the supervisor presents
    http_auth: str | None = field(default=None, repr=False)  # ``USER[:PASSWORD]`` for a proxy before Consul
    leader_change_s: float = 14.0  # how long a change of the servers' leader takes; no request depends on it


@dataclass(frozen=True, slots=True)
class LogSettings:
    """The lowest level that is logged, and the format of the log."""

    level: Literal["debug", "info", "warning", "error"] = "info"
    format: Literal["auto", "console", "json", "journal"] = "auto"


@dataclass(frozen=True, slots=True)
class ControlSettings:
    """The position where commands reach the daemon."""

    path: str  # the unix socket
    group: str | None = None  # whose members may send commands, beside root and our own user
    configured: bool = False  # whether the file names the socket, and not systemd or the default
    link: str = ""  # where commands look for it: the socket itself, or a link to it. Blank: nowhere


@dataclass(frozen=True, slots=True)
class HttpSettings:
    """The address at which the daemon listens over TCP."""

    host: str  # a literal address, without brackets
    port: int  # 0 lets the system choose a port

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


@dataclass(frozen=True, slots=True)
class FleetSettings:
    """The positions in Consul by which the daemons and people know of each other."""

    service: str  # the service as which each daemon registers itself
    prefix: str  # of the keys of history and orders
    deregister_critical_service_after_s: float  # how long Consul shows a node that died


@dataclass(frozen=True, slots=True)
class Config:
    """A configuration without a fault."""

    consul: ConsulSettings
    log: LogSettings
    items: tuple[ItemSettings, ...]
    state_dir: str
    warnings: tuple[Problem, ...] = ()  # what the operator should know, although it can be used
    withheld: frozenset[str] = frozenset()  # the variables that hooks must not inherit
    control: ControlSettings | None = None  # None: no commands, as no file says who may send them
    http: HttpSettings | None = None  # None: the daemon does not listen over TCP
    fleet: FleetSettings | None = None  # None: the daemon tells others nothing through Consul
    page: str = ""  # the URL at which people reach this node's page. Blank: not known
    kept: bytes = field(default=b"", compare=False, repr=False)  # for a start that cannot use the files
    # Where each key and value is in the files. None: not needed any more.
    positions: Positions | None = field(default=None, compare=False, repr=False)
