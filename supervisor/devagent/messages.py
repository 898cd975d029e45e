"""Plain values that go into the model and come out: requests, answers, and promises of answers.

Nothing here knows a connection, or the meaning of a request.
"""

from dataclasses import dataclass

Headers = tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class AgentRequest:
    """One request.

    target: the path with its query, as the client sent them.
    sized: whether the body came with a Content-Length, and not in chunks.
    node: the name of the node whose agent receives the request. Blank: the cluster's first node.
    """

    method: str
    target: str
    body: bytes = b""
    sized: bool = True
    node: str = ""


@dataclass(frozen=True, slots=True)
class Answer:
    """One answer.

    close: whether the connection ends with this answer.
    """

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
    """The promise of an answer, which ``Model.advance`` returns later.

    number: grows in the order of the requests.
    until: the latest moment of the answer.
    """

    number: int
    request: AgentRequest
    until: float


class Rejected(Exception):
    """The server refuses the request; the text is Consul's own and becomes the answer (500, or 409)."""
