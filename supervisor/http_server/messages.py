"""What a handler is given and what it gives back: plain values, without a connection."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from supervisor.http_server.peer import Peer


@dataclass(frozen=True, slots=True)
class Limits:
    """What clients may ask for.

    ``clients_max``: when one more client connects, the client that has been idle longest is closed
    without a word, or the new one if no client is idle. ``slow_readers_max``: the bound on answers that
    clients have not read yet, because each is kept in memory meanwhile.
    """

    clients_max: int = 200  # Consul's http_max_conns_per_client
    slow_readers_max: int = 200
    head_bytes_max: int = 65536
    body_bytes_max: int = 1 << 20
    receive_s: float = 30.0  # a whole request, from its first byte
    send_s: float = 30.0  # a whole answer
    idle_s: float = 300.0  # between two requests


@dataclass(frozen=True, slots=True)
class HttpRequest:
    """One request; ``sized``: its body came with a Content-Length (or there is none).

    ``peer``: who sent it, where the kernel knows; None over TCP.
    """

    method: str
    target: str
    headers: tuple[tuple[str, str], ...]
    body: bytes
    sized: bool
    peer: Peer | None = None


@dataclass(frozen=True, slots=True)
class HttpAnswer:
    """One answer; ``close``: the connection ends with it."""

    status: int
    body: bytes = b""
    headers: tuple[tuple[str, str], ...] = ()
    close: bool = False


Handler = Callable[[HttpRequest], Awaitable[HttpAnswer]]
