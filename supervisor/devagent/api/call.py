"""One request on its way through the API: its parameters, its body, and the answers it may get.

Parameters and bodies are read as Consul reads them, errors included. Nothing here writes.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import quote_plus, unquote_to_bytes

from supervisor.devagent.gotext import SECOND_NS, dump_json, parse_duration_ns, parse_uint
from supervisor.devagent.messages import Answer, Headers, Request
from supervisor.devagent.queries import Query
from supervisor.devagent.store import Store

TEXT = ("Content-Type", "text/plain; charset=utf-8")
JSON = ("Content-Type", "application/json")
HOP = "rpc error making call: "
WAIT_DEFAULT_S = 300.0
WAIT_MAX_S = 600.0
VALUE_BYTES_MAX = 524_288  # kv_max_value_size, and txn_max_req_len
ESCAPE = re.compile(r"%(?![0-9A-Fa-f]{2})")


@dataclass(frozen=True, slots=True)
class Settings:
    """What an agent is started with. ``client_agent``: it answers as a client agent of its server does."""

    node: str = "dev-agent"
    datacenter: str = "dc1"
    session_ttl_min_s: float = 1.0
    seed: int = 0
    client_agent: bool = False


class NoLeader(Exception):
    """The cluster has no leader: the request is held for a while. Nothing was written."""


class Answered(Exception):
    """The request has its answer already: there is something wrong with it."""

    def __init__(self, answer: Answer) -> None:
        super().__init__(answer)
        self.answer = answer


@dataclass(frozen=True, slots=True)
class Ask:
    """A read to be answered at once, or once its index has passed ``index`` or ``wait_s`` are over."""

    query: Query
    index: int
    wait_s: float
    stale: bool
    pretty: bool


@dataclass(frozen=True, slots=True)
class Call:
    """A request with everything that its handler needs. ``rest`` is the path behind the route's."""

    request: Request
    store: Store
    settings: Settings
    now: float
    has_leader: bool
    rest: str
    parameters: Mapping[str, str] = field(default_factory=dict)

    @property
    def node(self) -> str:
        """The name of the node whose agent was asked."""
        return self.request.node or self.settings.node

    @property
    def pretty(self) -> bool:
        """Whether the JSON is to be indented."""
        return "pretty" in self.parameters

    def json(self, value: object, status: int = 200, headers: Headers = ()) -> Answer:
        """An answer in JSON."""
        return Answer(status, dump_json(value, self.pretty), (JSON, *headers))

    def to_server(self, *, stale: bool = False) -> None:
        """From here on the agent asks a server. Raises Answered, NoLeader."""
        if self.parameters.get("dc", "") not in ("", self.settings.datacenter):
            raise Answered(refusal(self.settings, "No path to datacenter"))
        if not self.has_leader and not stale:
            raise NoLeader

    def number(self, name: str) -> int:
        """An unsigned parameter. Raises Answered."""
        try:
            return parse_uint(self.parameters[name])
        except ValueError as error:
            raise Answered(text(500, str(error))) from None

    def refuse_namespace(self) -> None:
        """Raises Answered."""
        if self.parameters.get("ns"):
            words = 'Invalid query parameter: "ns" - Namespaces are a Consul Enterprise feature'
            raise Answered(text(400, f"Bad request: {words}"))

    def refuse_together(self, *names: str) -> None:
        """Of these parameters at most one may be given. Raises Answered."""
        if sum(name in self.parameters for name in names) > 1:
            listed = sorted(self.parameters.items())
            encoded = "&".join(f"{quote_plus(name)}={quote_plus(value)}" for name, value in listed)
            raise Answered(text(400, f"Conflicting flags: {encoded}"))

    def check_options(self) -> None:
        """What every read checks first, and a write to a key too. Raises Answered."""
        self.wait_s()
        self.min_index()
        if "stale" in self.parameters and "consistent" in self.parameters:
            words = "Cannot specify ?stale with ?consistent, conflicting semantics."
            raise Answered(text(400, words))

    def wait_s(self) -> float:
        """How long to wait at most; zero and less stand for the default. Raises Answered."""
        given = self.parameters.get("wait", "")
        try:
            wait_s = parse_duration_ns(given) / SECOND_NS if given else 0.0
        except ValueError:
            raise Answered(text(400, "Invalid wait time")) from None
        return min(wait_s, WAIT_MAX_S) if wait_s > 0 else WAIT_DEFAULT_S

    def min_index(self) -> int:
        """The index that the asker has seen; 0: it will not wait. Raises Answered."""
        given = self.parameters.get("index", "")
        try:
            return parse_uint(given) if given else 0
        except ValueError:
            raise Answered(text(400, "Invalid index")) from None

    def ask(self, query: Query) -> Ask:
        """The read that these parameters describe, on its way to a server."""
        stale = "stale" in self.parameters
        self.to_server(stale=stale)
        return Ask(query, self.min_index(), self.wait_s(), stale, self.pretty)


def text(status: int, words: str, *, close: bool = False) -> Answer:
    """An answer in words."""
    return Answer(status, words.encode(), (TEXT,), close)


def refusal(settings: Settings, words: str) -> Answer:
    """An error of the server's. A client agent hands it on with words of its own before it."""
    return text(500, f"{HOP}{words}" if settings.client_agent else words)


def too_large(body: bytes, option: str) -> Answer:
    """Consul's 413; it then closes the connection."""
    sizes = f"Request body({len(body)} bytes) too large, max size: {VALUE_BYTES_MAX} bytes."
    link = f"https://www.consul.io/docs/agent/options.html#{option}"
    return text(413, f"{sizes} See {link}.", close=True)


def read_parameters(query: str) -> dict[str, str]:
    """The first value of each parameter. Raises ValueError for a bad escape."""
    parameters: dict[str, str] = {}
    for part in re.split("[&;]", query):
        if not part:
            continue
        if ESCAPE.search(part):
            raise ValueError("invalid URL escape")
        name, _, value = part.replace("+", " ").partition("=")
        parameters.setdefault(_unescaped(name), _unescaped(value))
    return parameters


def _unescaped(text: str) -> str:
    return unquote_to_bytes(text).decode("utf-8", "surrogateescape")
