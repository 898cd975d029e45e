"""The commands of the daemon and its replies, and how HTTP carries both.

    POST /v1/recover/NAME      POST /v1/pause/NAME    POST /v1/resume/NAME
    POST /v1/reload            POST /v1/pause         POST /v1/resume       (all items)
    POST /v1/drain             POST /v1/undrain                             (all items)
    POST /v1/confirm-off/NAME  with the body {"machine": "NODE"}, or none
    POST /v1/confirm-off       (all that wait for this machine) with such a body
    POST /v1/step-down/NAME    with the body {"for_s": 60, "to": "NODE"}, or a part of it, or none
    POST /v1/step-down         (all that this node holds) with the body {"for_s": 60}, or none

Pause and drain may have {"for_s": 7200} in their body, and each may have {"note": "why it is given"}, which
people read later. Step-down, drain and reload may have {"force": true}: also in a silence of Consul.

A success is 200 ``{"done": true, "lines": [...]}``. A failure is ``{"error": "cannot pause NAME: why",
"lines": [...]}`` with 404 for a name that the daemon does not know, 409 for a command that is not possible
now, and 422 for a configuration with faults.
"""

import json
import re
from collections.abc import Mapping
from enum import IntEnum, StrEnum
from typing import NamedTuple

NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,62}")
ERROR_CHARS_MAX = 1000  # one line for a person
LINES_MAX = 10_000  # a reload replies a line for each item or for each fault
REST_S = 60.0  # how long a node does not contend after step-down, by default
REST_S_MAX = 86_400.0
RELEASED_S = 600.0  # a step-down waits so long for on_lose with its retries, and for Consul to come back
TAKEN_OVER_S = 10.0  # and then for another node; waiters try within milliseconds of a release
DONE_S = 660.0  # all that a daemon does for a command takes less
PAUSE_S_MAX = 2_592_000.0  # thirty days
NOTE_CHARS_MAX = 200  # a sentence; as JSON it has at most 2,400 bytes, within the body that the socket takes
NODE = re.compile(r"[\x21-\x7e]{1,256}")  # a name of Consul's or of a host, or the ID of a session


class Verb(StrEnum):
    """The verb of a command."""

    RECOVER = "recover"
    CONFIRM_OFF = "confirm-off"
    PAUSE = "pause"
    RESUME = "resume"
    DRAIN = "drain"
    UNDRAIN = "undrain"
    STEP_DOWN = "step-down"
    RELOAD = "reload"


FOR_ALL = (Verb.PAUSE, Verb.RESUME, Verb.DRAIN, Verb.UNDRAIN, Verb.STEP_DOWN, Verb.RELOAD, Verb.CONFIRM_OFF)
FOR_ONE = (Verb.PAUSE, Verb.RESUME, Verb.RECOVER, Verb.CONFIRM_OFF, Verb.STEP_DOWN)


class OperatorCommand(NamedTuple):
    """A command to the daemon."""

    verb: Verb
    name: str | None = None  # the item. None: every item, which only the verbs of FOR_ALL allow
    rest_s: float = REST_S  # how long the node does not contend after step-down
    note: str = ""  # why the operator gives it. Blank: no reason is given
    to: str = ""  # the node that is to take over after step-down. Blank: any node
    pause_s: float | None = None  # how long the pause lasts. None: until resume
    force: bool = False  # also while Consul is silent and `outage` rides that out, so that nobody takes over
    machine: str = ""  # the machine of which confirm-off is said. Blank: the one that the item waits for


class Result(IntEnum):
    """The end of a command, which is the status of its answer.

    FAULTY: the configuration cannot be used. ELSEWHERE: another node holds what this one is to give up.
    """

    DONE = 200
    UNKNOWN = 404
    IMPOSSIBLE = 409
    ELSEWHERE = 421
    FAULTY = 422


class Reply(NamedTuple):
    """The daemon's reply to a command."""

    outcome: Result
    error: str = ""  # one line that says what cannot be done, and why. Blank: the command is done
    lines: tuple[str, ...] = ()  # more lines to print, such as the effect of a reload on each item


class InvalidCommand(Exception):
    """The body does not fit the command. The text says why."""


def request_path(command: OperatorCommand) -> str:
    return f"/v1/{command.verb}" + (f"/{command.name}" if command.name is not None else "")


def request_body(command: OperatorCommand) -> bytes:
    for_s = command.rest_s if command.verb is Verb.STEP_DOWN else command.pause_s
    content: dict[str, object] = {} if for_s is None else {"for_s": for_s}
    content |= {"to": command.to} if command.to else {}
    content |= {"machine": command.machine} if command.machine else {}
    content |= {"force": True} if command.force else {}
    content |= {"note": command.note} if command.note else {}
    return json.dumps(content).encode() if content else b""


def command_of(path: str, body: bytes = b"") -> OperatorCommand | None:
    """Return the command of a request. None: its path is not a command's. Raises InvalidCommand."""
    for verb in Verb:
        name = path.removeprefix(f"/v1/{verb}/")
        is_for_all = path == f"/v1/{verb}" and verb in FOR_ALL
        if is_for_all or (name != path and verb in FOR_ONE and NAME.fullmatch(name)):
            return _with_fields(OperatorCommand(verb, None if is_for_all else name), _object(body))
    return None


def _with_fields(command: OperatorCommand, given: Mapping[str, object]) -> OperatorCommand:
    """Return the command with the fields of its body. Raises InvalidCommand."""
    command = command._replace(note=_note(given), force=given.get("force") is True)
    if command.verb is Verb.CONFIRM_OFF:
        command = command._replace(machine=_node(given, "machine"))
        if command.name is None and not command.machine:
            raise InvalidCommand("machine must name the machine that is off")
        return command
    if command.verb in (Verb.PAUSE, Verb.DRAIN) and "for_s" in given:
        return command._replace(pause_s=_for_s(given, PAUSE_S_MAX))
    if command.verb is Verb.STEP_DOWN:
        command = command._replace(to=_node(given, "to"))
        if command.name is None and command.to:
            raise InvalidCommand("to needs the name of the election that the node is to take over")
        return command._replace(rest_s=_for_s(given, REST_S_MAX)) if "for_s" in given else command
    return command


def note_of(text: str) -> str | None:
    """Return the reason of a command, without blanks around it. None: it is no short, printable line."""
    note = text.strip(" ")
    return note if len(note) <= NOTE_CHARS_MAX and note.isprintable() else None


def _note(given: Mapping[str, object]) -> str:
    text = given.get("note", "")
    note = note_of(text) if isinstance(text, str) else None
    if note is None:
        raise InvalidCommand(f"note must be a text of at most {NOTE_CHARS_MAX} printable characters")
    return note


def _for_s(given: Mapping[str, object], most_s: float) -> float:
    for_s = given["for_s"]
    if isinstance(for_s, bool) or not isinstance(for_s, int | float) or not 0 <= for_s <= most_s:
        raise InvalidCommand(f"for_s must be a number from 0 to {most_s:g}")
    return float(for_s)


def _node(given: Mapping[str, object], field: str) -> str:
    node = given.get(field, "")
    if not isinstance(node, str) or (node and not NODE.fullmatch(node)):
        raise InvalidCommand(f"{field} must be the name of a node or the ID of a session, without blanks")
    return node


def body_of(reply: Reply) -> bytes:
    document: dict[str, object] = {"done": True} if reply.outcome is Result.DONE else {"error": reply.error}
    return json.dumps(document | ({"lines": reply.lines} if reply.lines else {})).encode()


def reply_of(status: int, body: bytes) -> Reply | None:
    """Return the reply in an answer. None: the answer is not a daemon's."""
    outcome, document = next((each for each in Result if each == status), None), _object(body)
    found = document.get("lines")
    lines = tuple(_line(each) for each in found[:LINES_MAX]) if isinstance(found, list) else ()
    if outcome is Result.DONE:
        return Reply(outcome, "", lines) if document.get("done") is True else None
    error = error_of(body)
    return Reply(outcome, error, lines) if outcome is not None and error else None


def error_of(body: bytes) -> str:
    """Return the error in an answer's body, as one bounded line. Blank: there is none."""
    return _line(_object(body).get("error"))


def _line(text: object) -> str:
    return " ".join(text.split())[:ERROR_CHARS_MAX] if isinstance(text, str) else ""


def _object(body: bytes) -> dict[str, object]:
    try:
        document = json.loads(body)
    except (ValueError, RecursionError):
        return {}
    return document if isinstance(document, dict) else {}
