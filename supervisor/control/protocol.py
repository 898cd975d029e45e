"""What can be asked of the daemon and what it replies, and how HTTP says both.

    POST /v1/recover/NAME      POST /v1/pause/NAME    POST /v1/resume/NAME
    POST /v1/reload            POST /v1/pause         POST /v1/resume       (all items)
    POST /v1/step-down/NAME    with the body {"for_s": 60}, or none

200 ``{"done": true, "lines": [...]}``, else ``{"error": "cannot pause NAME: why", "lines": [...]}`` with
404 for a name that the daemon does not know, 409 for what is not possible now and 422 for a
configuration with faults.
"""

import json
import re
from dataclasses import dataclass
from enum import StrEnum

NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,62}")
ERROR_CHARS_MAX = 1000  # one line for a person
LINES_MAX = 10_000  # as many as items that a file may have, or faults that it shows
REST_S = 60.0  # of who has stepped down, where nobody says otherwise
REST_S_MAX = 86_400.0


class Verb(StrEnum):
    """What is to be done."""

    RECOVER = "recover"
    PAUSE = "pause"
    RESUME = "resume"
    STEP_DOWN = "step-down"
    RELOAD = "reload"


FOR_ALL = (Verb.PAUSE, Verb.RESUME, Verb.RELOAD)
FOR_ONE = (Verb.PAUSE, Verb.RESUME, Verb.RECOVER, Verb.STEP_DOWN)


@dataclass(frozen=True, slots=True)
class Command:
    """``name`` None: every item (only for the verbs of FOR_ALL). ``rest_s``: of step-down."""

    verb: Verb
    name: str | None = None
    rest_s: float = REST_S


class Outcome(StrEnum):
    """What became of a command. FAULTY: the configuration cannot be used."""

    DONE = "done"
    UNKNOWN = "unknown"
    IMPOSSIBLE = "impossible"
    FAULTY = "faulty"


@dataclass(frozen=True, slots=True)
class Reply:
    """``error``: blank when it is done, else one line: what cannot be, and why. ``lines``: what else
    there is to say."""

    outcome: Outcome
    error: str = ""
    lines: tuple[str, ...] = ()


DONE = Reply(Outcome.DONE)
STATUSES = {Outcome.DONE: 200, Outcome.UNKNOWN: 404, Outcome.IMPOSSIBLE: 409, Outcome.FAULTY: 422}
_OUTCOMES = {status: outcome for outcome, status in STATUSES.items()}


class InvalidCommand(Exception):
    """The body is none of this command's; the text says why."""


def request_path(command: Command) -> str:
    """The request's target."""
    return f"/v1/{command.verb}" + (f"/{command.name}" if command.name is not None else "")


def request_body(command: Command) -> bytes:
    """The request's body."""
    return json.dumps({"for_s": command.rest_s}).encode() if command.verb is Verb.STEP_DOWN else b""


def command_of(target: str, body: bytes = b"") -> Command | None:
    """The command that this target asks for; None for what is none. Raises InvalidCommand."""
    for verb in Verb:
        if target == f"/v1/{verb}" and verb in FOR_ALL:
            return Command(verb)
        name = target.removeprefix(f"/v1/{verb}/")
        if name != target and verb in FOR_ONE and NAME.fullmatch(name):
            return Command(verb, name, _rest_s(body) if verb is Verb.STEP_DOWN else REST_S)
    return None


def _rest_s(body: bytes) -> float:
    if not body:
        return REST_S
    for_s = _object(body).get("for_s")
    if isinstance(for_s, bool) or not isinstance(for_s, int | float) or not 0 <= for_s <= REST_S_MAX:
        raise InvalidCommand(f"for_s must be a number from 0 to {REST_S_MAX:g}")
    return float(for_s)


def error_body(error: str) -> bytes:
    """The body of an answer that is not 200."""
    return json.dumps({"error": error}).encode()


def body_of(reply: Reply) -> bytes:
    """The answer's body."""
    said: dict[str, object] = {"done": True} if reply.outcome is Outcome.DONE else {"error": reply.error}
    return json.dumps(said | ({"lines": reply.lines} if reply.lines else {})).encode()


def reply_of(status: int, body: bytes) -> Reply | None:
    """The reply that this answer tells; None when it is none of a daemon's."""
    outcome, told = _OUTCOMES.get(status), _object(body)
    said = told.get("lines")
    lines = tuple(_line(each) for each in said[:LINES_MAX]) if isinstance(said, list) else ()
    if outcome is Outcome.DONE:
        return Reply(outcome, "", lines) if told.get("done") is True else None
    error = error_of(body)
    return Reply(outcome, error, lines) if outcome is not None and error else None


def error_of(body: bytes) -> str:
    """The error in an answer's body, as one bounded line; blank when there is none."""
    return _line(_object(body).get("error"))


def _line(text: object) -> str:
    return " ".join(text.split())[:ERROR_CHARS_MAX] if isinstance(text, str) else ""


def _object(body: bytes) -> dict[str, object]:
    try:
        told = json.loads(body)
    except (ValueError, RecursionError):
        return {}
    return told if isinstance(told, dict) else {}
