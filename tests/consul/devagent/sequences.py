"""Sequences of requests as data, from files.

A step is a request with names in it: ``$K`` is the sequence's own key prefix, ``$s1`` a session or an index
that an earlier step kept.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from supervisor.rehearsal.devagent.model import Model
from supervisor.reporting.http_server import HttpAnswer, HttpRequest

RECORDED = tuple(Path(__file__).with_name(name) for name in ("recorded.txt", "semaphores.txt"))
LINE = re.compile(r"(?:@(?P<at>[\d.]+) )?(?P<method>[A-Z]+) (?P<target>\S+)(?: (?P<body>.*))?")
KEPT = re.compile(r"(.*) = (\w+)")
NAME = re.compile(r"\$([a-z]\w*)(\^?)")
NUMBER = re.compile(r'"#(\w+)"')


@dataclass(frozen=True, slots=True)
class Step:
    """One request.

    watch: the request is expected to wait.
    at_s: counted from the begin of the sequence.
    """

    method: str
    target: str
    body: str = ""
    name: str = ""
    at_s: float = 0.0
    watch: bool = False

    def request(self, prefix: str, names: dict[str, str]) -> HttpRequest:
        """Return the request with its names replaced; an unknown name stays as it is."""
        target, body = (_filled(text, prefix, names) for text in (self.target, self.body))
        if body.startswith("bytes:"):
            return HttpRequest(self.method, f"/v1{target}", (), b"x" * int(body[6:]))
        return HttpRequest(self.method, f"/v1{target}", (), body.encode())


@dataclass(frozen=True, slots=True)
class Sequence:
    """Steps in order.

    title: as in the file.
    """

    title: str
    steps: tuple[Step, ...]

    @property
    def timed(self) -> bool:
        return any(step.at_s for step in self.steps)


def recorded() -> list[Sequence]:
    found: list[Sequence] = []
    for line in (line for path in RECORDED for line in path.read_text().splitlines()):
        if line.startswith("== "):
            found.append(Sequence(line[3:], ()))
        elif line and not line.startswith("#"):
            found[-1] = replace(found[-1], steps=(*found[-1].steps, _step(line)))
    return found


def index_of(answer: HttpAnswer) -> int:
    """Return X-Consul-Index, 0 when absent."""
    return int(dict(answer.headers).get("X-Consul-Index", 0))


def kept(answer: HttpAnswer) -> str:
    """Return the part of an answer that a step with a name keeps: a new session's id, or else the index."""
    match = re.search(rb'^\{\s*"ID":\s*"([^"]+)"', answer.body)
    return match[1].decode() if match else str(index_of(answer))


def deadlines(model: Model, prefix: str) -> Iterator[tuple[float, float]]:
    """List the spans of time in which something of the sequence with this prefix ends by itself."""
    store = model.store
    for key, at in store.sessions.expiries.items():
        if store.sessions.table[key].name.startswith(prefix):
            yield (at, at)
    for name, end in store.delays.items():
        if name.startswith(prefix):
            yield (end, end)
    for waiting in model.waiting.values():
        if prefix in waiting.request.target:
            wait = re.search(r"wait=(\d+)s", waiting.request.target)
            longest_s = float(wait[1]) / 16 if wait else 0.0
            yield (waiting.until - longest_s, waiting.until + longest_s)


def _step(line: str) -> Step:
    named = KEPT.fullmatch(line)
    rest, name = (named[1], named[2]) if named else (line, "")
    match = LINE.fullmatch(rest)
    assert match is not None, f"not a step: {line}"
    watch = match["method"] == "WATCH"
    method = "GET" if watch else match["method"]
    return Step(method, match["target"], match["body"] or "", name, float(match["at"] or 0), watch)


def _filled(text: str, prefix: str, names: dict[str, str]) -> str:
    def named(match: re.Match[str]) -> str:
        value = names.get(match[1], match[0])
        return value.upper() if match[2] else value

    text = NUMBER.sub(lambda match: names.get(match[1], match[0]), text)
    return NAME.sub(named, text.replace("$K", prefix))
