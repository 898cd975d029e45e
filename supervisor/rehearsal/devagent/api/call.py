"""One request on its way through the API: its parameters, its JSON body, and the answers that it may get."""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from supervisor.rehearsal.devagent.queries import Query
from supervisor.rehearsal.devagent.sessions import SECOND_NS, nanoseconds
from supervisor.rehearsal.devagent.store import Store
from supervisor.reporting.http_server import HttpAnswer, HttpRequest

TEXT = ("Content-Type", "text/plain; charset=utf-8")
JSON = ("Content-Type", "application/json")
LEADER = (("X-Consul-Knownleader", "true"), ("X-Consul-Lastcontact", "0"))
HOP = "rpc error making call: "
WAIT_DEFAULT_S = 300.0
WAIT_MAX_S = 600.0
UINT64_MAX = 2**64 - 1
VALUE_BYTES_MAX = 524_288  # kv_max_value_size, and txn_max_req_len


@dataclass(frozen=True, slots=True)
class Settings:
    """The settings with which an agent is started."""

    node: str = "dev-agent"
    datacenter: str = "dc1"
    session_ttl_min_s: float = 1.0
    seed: int = 0
    client_agent: bool = False  # whether the agent answers as a client agent of its server does


class ApiReply(Exception):
    """The request has its answer already, because something is wrong with the request."""

    def __init__(self, answer: HttpAnswer) -> None:
        super().__init__(answer)
        self.answer = answer


@dataclass(frozen=True, slots=True)
class Ask:
    """A read, to be answered once its index has passed ``index`` or ``wait_s`` are over."""

    query: Query
    index: int  # 0: the read is answered at once
    wait_s: float


@dataclass(frozen=True, slots=True)
class ApiRequest:
    """A request with everything that its handler needs."""

    request: HttpRequest
    node: str  # whose agent receives it
    store: Store
    settings: Settings
    now: float
    rest: str  # the path behind the route's
    parameters: Mapping[str, str]

    def json(self, value: object, status: int = 200) -> HttpAnswer:
        return HttpAnswer(status, as_json(value), (JSON,))

    def check_datacenter(self) -> None:
        """Check that the cluster has the datacenter of the request. Raises ApiReply."""
        if self.parameters.get("dc", "") not in ("", self.settings.datacenter):
            raise ApiReply(refusal(self.settings, "No path to datacenter"))

    def need_rest(self, missing: str) -> None:
        """Check that something follows the route's path. Raises ApiReply."""
        if not self.rest:
            raise ApiReply(text(400, f"Missing {missing}"))

    def number(self, name: str) -> int:
        """Return an unsigned parameter, 0 when absent. Raises ApiReply."""
        number = _unsigned(self.parameters.get(name, "0"))
        if number is None:
            raise ApiReply(text(500, f"{name} is no unsigned number of 64 bits"))
        return number

    def refuse_together(self, *names: str) -> None:
        """Check that the request has at most one of these parameters. Raises ApiReply."""
        if len(self.parameters.keys() & set(names)) > 1:
            raise ApiReply(text(400, f"Conflicting flags: {', '.join(names)}"))

    def ask(self, query: Query) -> Ask:
        """Return the read that the parameters describe, handed to a server. Raises ApiReply."""
        try:
            wait_s = nanoseconds(self.parameters.get("wait") or "0") / SECOND_NS
        except ValueError:
            raise ApiReply(text(400, "Invalid wait time")) from None
        index = _unsigned(self.parameters.get("index") or "0")
        if index is None:
            raise ApiReply(text(400, "Invalid index"))
        self.check_datacenter()
        return Ask(query, index, min(wait_s, WAIT_MAX_S) if wait_s > 0 else WAIT_DEFAULT_S)


def _unsigned(given: str) -> int | None:
    number = int(given) if re.fullmatch(r"[0-9]{1,20}", given) else None
    return None if number is None or number > UINT64_MAX else number


def as_json(value: Any) -> bytes:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()


def text(status: int, words: str, *, close: bool = False) -> HttpAnswer:
    return HttpAnswer(status, words.encode(), (TEXT,), close)


def refusal(settings: Settings, words: str) -> HttpAnswer:
    """Return an error of the server; a client agent puts words of its own before the server's."""
    return text(500, f"{HOP}{words}" if settings.client_agent else words)


def refuse_large(body: bytes) -> None:
    """Check the size of a body; after Consul's 413 the connection ends. Raises ApiReply."""
    if len(body) > VALUE_BYTES_MAX:
        words = f"Request body({len(body)} bytes) too large, max size: {VALUE_BYTES_MAX} bytes."
        raise ApiReply(text(413, words, close=True))


def decode(body: bytes) -> Any:
    """Return the JSON value of a body. Raises ValueError when the body is no JSON."""
    try:
        return json.loads(body)
    except RecursionError:
        raise ValueError("exceeded max depth") from None


class Fields:
    """The fields of one JSON object. Like Go's decoder this ignores the case of their names, and null.

    Every method raises ValueError when the body is of another shape.
    """

    def __init__(self, value: object) -> None:
        if not isinstance(value, dict):
            raise ValueError(f"an object was expected, not {value!r:.50}")
        self._fields = {name.lower(): field for name, field in value.items() if field is not None}

    @property
    def names(self) -> frozenset[str]:
        return frozenset(self._fields)

    def any(self, name: str) -> Any:
        return self._fields.get(name.lower())

    def text(self, name: str, default: str = "") -> str:
        value = self.any(name)
        return default if value is None else text_of(value)

    def number(self, name: str) -> int:
        value = self._fields.get(name.lower(), 0)
        if type(value) is not int or not 0 <= value <= UINT64_MAX:
            raise ValueError(f"{name} is no unsigned number of 64 bits")
        return value

    def items(self, name: str) -> list[Any]:
        value = self._fields.get(name.lower(), [])
        if not isinstance(value, list):
            raise ValueError(f"{name} is no list")
        return value


def text_of(value: object) -> str:
    """Return the value, which is text. Raises ValueError when it is none, or has half a surrogate pair."""
    if not isinstance(value, str):
        raise ValueError(f"text was expected, not {value!r:.50}")
    value.encode()
    return value
