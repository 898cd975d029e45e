"""What the file asks for beside its elections (those are ``supervisor.core.settings``)."""

from dataclasses import dataclass, field
from typing import Literal

from supervisor.config.problems import Places, Problem
from supervisor.core.settings import ItemSettings, Tls


@dataclass(frozen=True, slots=True)
class ConsulSettings:
    """How Consul is reached. ``address`` is ``http(s)://HOST[:PORT]`` or ``unix:///PATH``.

    At most one of ``token`` and ``token_file`` is set. ``http_auth``: ``USER`` or ``USER:PASSWORD``, for a
    proxy in front of Consul.
    """

    address: str
    token: str | None = field(default=None, repr=False)
    token_file: str | None = None
    datacenter: str | None = None
    namespace: str | None = None
    partition: str | None = None
    tls: Tls = Tls()
    http_auth: str | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True)
class LogSettings:
    """What is logged, and how."""

    level: Literal["debug", "info", "warning", "error"] = "info"
    format: Literal["auto", "console", "json"] = "auto"


@dataclass(frozen=True, slots=True)
class ControlSettings:
    """Where commands reach the daemon. ``group``: whose members may, beside root and our own user.

    ``configured``: the file says where; otherwise the path is what systemd or the default says.
    """

    path: str
    group: str | None = None
    configured: bool = False


@dataclass(frozen=True, slots=True)
class HttpSettings:
    """Where the daemon listens over TCP. ``host`` is a literal address, without brackets; ``port`` 0
    is one that the system chooses."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


@dataclass(frozen=True, slots=True)
class Config:
    """A configuration without a fault; ``warnings`` are what its author should still know.

    ``withheld``: variables that hold secrets of ours, which hooks must not inherit. ``control``
    None: no commands are taken, for there is no file to say from whom. ``http`` None: no TCP listener.
    ``places``: where everything stands; None: nobody needs that any more.
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
