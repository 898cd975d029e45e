"""Plain values that go into the model and come out: requests, answers, and promises of answers."""

from dataclasses import dataclass

Headers = tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class AgentRequest:
    """One request."""

    method: str
    target: str  # the path with its query, as the client sent them
    body: bytes = b""
    sized: bool = True  # whether the body came with a Content-Length, and not in chunks
    node: str = ""  # the name of the node whose agent receives the request. Blank: the cluster's first node.


@dataclass(frozen=True, slots=True)
class Answer:
    """One answer."""

    status: int
    body: bytes = b""
    headers: Headers = ()
    close: bool = False  # whether the connection ends with this answer

    @property
    def index(self) -> int:
        """X-Consul-Index, 0 when absent."""
        return next((int(value) for name, value in self.headers if name == "X-Consul-Index"), 0)


@dataclass(frozen=True, slots=True)
class Waiting:
    """The promise of an answer, which ``Model.advance`` returns later."""

    number: int  # grows in the order of the requests
    request: AgentRequest
    until: float  # the latest moment of the answer


class Rejected(Exception):
    """The server refuses the request; the text is Consul's own and becomes the answer (500, or 409)."""
