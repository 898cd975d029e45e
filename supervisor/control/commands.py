"""What can be asked of the daemon and what it replies, and how HTTP says both.

    POST /v1/recover/NAME      POST /v1/pause/NAME    POST /v1/resume/NAME
                               POST /v1/pause         POST /v1/resume       (all items)

200 ``{"done": true}``, else ``{"error": "cannot pause NAME: why"}`` with 404 for a name that the
daemon does not know and 409 for what is not possible now.
"""

import json
import re
from dataclasses import dataclass
from enum import StrEnum

NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,62}")
ERROR_CHARS_MAX = 1000  # one line for a person


class Verb(StrEnum):
    """What is to be done."""

    RECOVER = "recover"
    PAUSE = "pause"
    RESUME = "resume"


FOR_ALL = (Verb.PAUSE, Verb.RESUME)


@dataclass(frozen=True, slots=True)
class Command:
    """``name`` None: every item (only for the verbs of FOR_ALL)."""

    verb: Verb
    name: str | None = None


class Outcome(StrEnum):
    """What became of a command."""

    DONE = "done"
    UNKNOWN = "unknown"
    IMPOSSIBLE = "impossible"


@dataclass(frozen=True, slots=True)
class Reply:
    """``error``: blank when it is done, else one line: what cannot be, and why."""

    outcome: Outcome
    error: str = ""


DONE = Reply(Outcome.DONE)
STATUSES = {Outcome.DONE: 200, Outcome.UNKNOWN: 404, Outcome.IMPOSSIBLE: 409}
_OUTCOMES = {status: outcome for outcome, status in STATUSES.items()}


def target_of(command: Command) -> str:
    """The request's target."""
    return f"/v1/{command.verb}" + (f"/{command.name}" if command.name is not None else "")


def command_of(target: str) -> Command | None:
    """The command that this target asks for; None for what is none."""
    for verb in Verb:
        if target == f"/v1/{verb}" and verb in FOR_ALL:
            return Command(verb)
        name = target.removeprefix(f"/v1/{verb}/")
        if name != target and NAME.fullmatch(name):
            return Command(verb, name)
    return None


def error_body(error: str) -> bytes:
    """The body of an answer that is not 200."""
    return json.dumps({"error": error}).encode()


def body_of(reply: Reply) -> bytes:
    """The answer's body."""
    return b'{"done": true}' if reply.outcome is Outcome.DONE else error_body(reply.error)


def reply_of(status: int, body: bytes) -> Reply | None:
    """The reply that this answer tells; None when it is none of a daemon's."""
    outcome, told = _OUTCOMES.get(status), _object(body)
    if outcome is Outcome.DONE:
        return DONE if told.get("done") is True else None
    error = error_of(body)
    return Reply(outcome, error) if outcome is not None and error else None


def error_of(body: bytes) -> str:
    """The error in an answer's body, as one bounded line; blank when there is none."""
    error = _object(body).get("error")
    return " ".join(error.split())[:ERROR_CHARS_MAX] if isinstance(error, str) else ""


def _object(body: bytes) -> dict[str, object]:
    try:
        told = json.loads(body)
    except (ValueError, RecursionError):
        return {}
    return told if isinstance(told, dict) else {}
