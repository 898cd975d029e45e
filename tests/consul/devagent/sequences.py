"""Sequences of requests as data: recorded ones from a file, random ones from a seed.

A step is a request with names in it: ``$K`` is the sequence's own key prefix, ``$s1`` a session or an index
    that an earlier step kept. Random sequences with times are made beside a scratch model, so that no step
    stands at a deadline, where either response would be right.
"""

import random
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from supervisor.rehearsal.devagent.messages import AgentRequest, Answer
from supervisor.rehearsal.devagent.model import Model

RECORDED = tuple(Path(__file__).with_name(name) for name in ("recorded.txt", "semaphores.txt"))
LINE = re.compile(r"(?:@(?P<at>[\d.]+) )?(?P<method>[A-Z]+) (?P<target>\S+)(?: (?P<body>.*))?")
KEPT = re.compile(r"(.*) = (\w+)")
NAME = re.compile(r"\$([a-z]\w*)(\^?)")
NUMBER = re.compile(r'"#(\w+)"')
CLEAR_S = 0.3  # between a step and the nearest deadline


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

    def request(self, prefix: str, names: dict[str, str]) -> AgentRequest:
        """Return the request with its names replaced; an unknown name stays as it is."""
        target, body = (_filled(text, prefix, names) for text in (self.target, self.body))
        if body.startswith("bytes:"):
            return AgentRequest(self.method, f"/v1{target}", b"x" * int(body[6:]))
        if body.startswith("chunked:"):
            return AgentRequest(self.method, f"/v1{target}", body[8:].encode(), sized=False)
        return AgentRequest(self.method, f"/v1{target}", body.encode())


@dataclass(frozen=True, slots=True)
class Sequence:
    """Steps in order.

    title: a title of a file, or a seed.
    """

    title: str
    steps: tuple[Step, ...]

    @property
    def timed(self) -> bool:
        """Whether time must pass in the sequence."""
        return any(step.at_s for step in self.steps)


def recorded() -> list[Sequence]:
    """Return the sequences of the files."""
    found: list[Sequence] = []
    for line in (line for path in RECORDED for line in path.read_text().splitlines()):
        if line.startswith("== "):
            found.append(Sequence(line[3:], ()))
        elif line and not line.startswith("#"):
            found[-1] = replace(found[-1], steps=(*found[-1].steps, _step(line)))
    return found


def quick(seed: int, length: int = 25) -> Sequence:
    """Return a random sequence in which no time need pass."""
    source = random.Random(seed)
    steps = list(_sessions(source, ('"60s"', '""'), ('"0s"', '"30s"', '"45s"')))
    steps += [step for at in range(length) for step in on_keys(source, at, 60)]
    return Sequence(f"quick {seed}", tuple(steps))


def timed(seed: int, length: int = 16, end_s: float = 6.0) -> Sequence:
    """Return a random sequence over some seconds, of short sessions, delays and waits."""
    source = random.Random(seed)
    scratch = Model()
    names: dict[str, str] = {}
    steps: list[Step] = []
    at_s = 0.0
    planned = [*_sessions(source, ('"1s"', '"1500ms"'), ('"0s"', '"500ms"', '"1s"', '"2s"'))]
    planned += [step for at in range(length) for step in on_keys(source, at, source.choice((1, 60)))]
    for step in planned:
        if len(steps) >= 3:
            at_s = _clear_of(scratch, round(at_s + source.choice((0.0, 0.1, 0.4, 0.8)), 2))
        if at_s > end_s:
            break
        steps.append(replace(step, at_s=at_s))
        answer = scratch.handle(step.request("k/", names), at_s)
        if step.name and isinstance(answer, Answer):
            names[step.name] = kept(answer)
    return Sequence(f"timed {seed}", tuple(steps))


def kept(answer: Answer) -> str:
    """Return the part of an answer that a step with a name keeps: a new session's id, or else the index."""
    match = re.search(rb'^\{\s*"ID":\s*"([^"]+)"', answer.body)
    return match[1].decode() if match else str(answer.index)


def deadlines(model: Model, prefix: str) -> Iterator[tuple[float, float]]:
    """List the spans of time in which something of the sequence with this prefix ends by itself."""
    store = model.store
    for key, at in store.sessions.expiries.items():
        if store.sessions.table[key].name.startswith(prefix):
            yield (at, at)
    for name, ends in store.delays.ends.items():
        if name.startswith(prefix):
            yield (min(ends), min(ends))
    for waiting in model.waiting:
        if prefix in waiting.request.target:
            wait = re.search(r"wait=(\d+)s", waiting.request.target)
            longest_s = float(wait[1]) / 16 if wait else 0.0
            yield (waiting.until - longest_s, waiting.until + longest_s)


def _clear_of(model: Model, at_s: float) -> float:
    """Return the first moment from ``at_s`` on that is clear of every deadline."""
    spans = sorted(deadlines(model, "k/"))
    while hit := [late for early, late in spans if early - CLEAR_S < at_s < late + CLEAR_S]:
        at_s = round(max(hit) + CLEAR_S + 0.01, 2)
    return at_s


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


def _sessions(source: random.Random, ttls: tuple[str, ...], delays: tuple[str, ...]) -> Iterator[Step]:
    for name in ("s1", "s2", "s3"):
        behavior = source.choice(("release", "release", "delete"))
        ttl, delay = source.choice(ttls), source.choice(delays)
        checks = source.choice(("", ',"NodeChecks":[]'))
        body = f'{{"Name":"$K","TTL":{ttl},"LockDelay":{delay},"Behavior":"{behavior}"{checks}}}'
        yield Step("PUT", "/session/create", body, name)


KEYS = {"$Ka": "ia", "$Kab": "ib", "$Kd/x": "ix", "$Kd/y": "iy"}  # each with the name of its index


def on_keys(source: random.Random, number: int, wait_s: int) -> tuple[Step, ...]:
    """Return a random operation on keys, or a read and the wait that follows from it."""
    key = list(KEYS)[number] if number < len(KEYS) else source.choice(list(KEYS))
    read = Step("GET", f"/kv/{key}", name=KEYS[key])
    if number < len(KEYS):
        return (read,)
    if source.random() < 0.2:
        return (read, Step("GET", f"/kv/{key}?index=${KEYS[key]}&wait={wait_s}s", watch=True))
    return (_operation(source, key, wait_s),)


def _operation(source: random.Random, key: str, wait_s: int) -> Step:
    """Return a random operation whose indexes are those of the reads before it."""
    index = "$" + (KEYS[key] if source.random() < 0.9 else source.choice(list(KEYS.values())))
    session = source.choice(("$s1", "$s1", "$s2", "$s3"))
    value = source.choice(("", "v", "w"))
    tree = source.choice(("$Kd/", "$Kd/", "$K", "$Ka"))
    made = {
        Step("PUT", f"/kv/{key}?acquire={session}", value): 9,
        Step("PUT", f"/kv/{key}?release={session}", value): 5,
        Step("PUT", f"/kv/{key}?flags={source.choice('01')}", value): 4,
        Step("PUT", f"/kv/{key}?cas={source.choice((index, index, '0', '1'))}", value): 3,
        Step("DELETE", f"/kv/{key}"): 2,
        Step("DELETE", f"/kv/{key}?cas={index}"): 1,
        Step("DELETE", f"/kv/{source.choice(('$Kd/', '$Ka', '$Knone'))}?recurse"): 1,
        Step("GET", f"/kv/{key}", name=KEYS[key]): 9,
        Step("GET", f"/kv/{tree}?recurse", name="it"): 4,
        Step("GET", "/kv/$K?keys&separator=/", name="it"): 1,
        Step("GET", f"/kv/{key}?index={index}&wait={wait_s}s", watch=True): 3,
        Step("GET", f"/kv/{tree}?recurse&index=$it&wait={wait_s}s", watch=True): 4,
        Step("PUT", f"/session/destroy/{session}"): 2,
        Step("PUT", f"/session/renew/{session}"): 3,
        Step("GET", f"/session/info/{session}"): 1,
        Step("PUT", "/session/create", '{"LockDelay":"0s"}', f"s{source.choice('123')}"): 1,
        Step("PUT", "/txn", _transaction(source, key, session, index)): 6,
    }
    return source.choices(list(made), list(made.values()))[0]


WRITES = ("cas", "cas", "lock", "lock", "unlock", "delete")


def _transaction(source: random.Random, key: str, session: str, index: str) -> str:
    """Return a transaction that ends with a write, because Consul shows the index of one that only reads."""

    def operation(position: int) -> str:
        verb = source.choice(
            (*WRITES, "check-session", "check-session", "check-not-exists") if position else WRITES
        )
        at = f',"Index":"#{index[1:]}"' if verb == "cas" else ""
        by = f',"Session":"{session}"' if "lock" in verb or "session" in verb else ""
        where = source.choice((key, "$Kd/x", "$Kd/"))
        return f'{{"KV":{{"Verb":"{verb}","Key":"{where}","Value":"{source.choice(("", "dg=="))}"{at}{by}}}}}'

    return "[" + ",".join(map(operation, reversed(range(source.choice((1, 1, 2, 3)))))) + "]"
