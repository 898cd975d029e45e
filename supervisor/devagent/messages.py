"""What goes into the model and what comes out of it: plain values.

A request and an answer as HTTP has them, without a connection; and the promise of an answer, for
a request that has to wait. Nothing here knows what a request means.
"""

from dataclasses import dataclass

Headers = tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Request:
    """One request. ``target`` is the path with its query, as it was sent.

    ``sized`` False: its body came in chunks, without Content-Length. ``node`` is the agent that was
    asked; blank is the cluster's first node.
    """

    method: str
    target: str
    body: bytes = b""
    sized: bool = True
    node: str = ""


@dataclass(frozen=True, slots=True)
class Answer:
    """One answer; ``close``: no other request is taken on its connection."""

    status: int
    body: bytes = b""
    headers: Headers = ()
    close: bool = False

    @property
    def index(self) -> int:
        """X-Consul-Index, 0 when absent."""
        return next((int(value) for name, value in self.headers if name == "X-Consul-Index"), 0)


@dataclass(frozen=True, slots=True)
class Waiting:
    """The answer comes later, from ``Model.advance``: when what was asked for changes, or at ``until``.

    Numbers grow in the order of the requests.
    """

    number: int
    request: Request
    until: float


class Refused(Exception):
    """The request cannot be done; the text is Consul's own and becomes its answer (500, or 409)."""
