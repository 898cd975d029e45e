"""The value of a fleet's key of shots: notes as JSON, at most NOTES_MAX of them.

    {"version": 1, "shots": [{"machine": "...", "host": "db1", "boot": "...", "by": "db2", "at": 1767225600.0,
    ...}]}

Any client of Consul may have written the value, so each field has a rule. Times in the value are Unix time,
and those of notes are on the core's clock. Pure functions.
"""

import json
from math import isfinite
from typing import Any

from supervisor.config.formats.json_values import DEPTH_MAX, is_deeper
from supervisor.config.formats.tenure_record import name_in
from supervisor.core.claim.notes import NOTES_MAX, Note, NoteState

VERSION = 1
BYTES_MAX = 256 * 1024
_NAMES = ("machine", "host", "boot", "target", "by", "method")


class ForeignNotes(Exception):
    """The value is no document of notes, so it is not written over."""


def encoded(notes: tuple[Note, ...], wall_s: float) -> bytes:
    """Return the value. wall_s: Unix time less the core's clock."""
    shots = [
        {name: getattr(note, name) for name in _NAMES}
        | {"at": round(note.at + wall_s, 3), "token": note.token}
        | {"takes": note.takes_s, "state": note.state}
        for note in notes
    ]
    return json.dumps(
        {"version": VERSION, "shots": shots}, ensure_ascii=False, separators=(",", ":")
    ).encode()


def decoded(value: bytes, wall_s: float) -> tuple[Note, ...]:
    """Return the notes; one in which a field breaks its rule is left out. Raises ForeignNotes."""
    try:
        found: Any = json.loads(value) if len(value) <= BYTES_MAX else None
        if is_deeper(found, DEPTH_MAX) or found["version"] != VERSION:
            raise ForeignNotes
        return tuple(filter(None, (_note(each, wall_s) for each in found["shots"][-NOTES_MAX:])))
    except (ValueError, RecursionError, TypeError, KeyError):
        raise ForeignNotes from None


def _note(fields: Any, wall_s: float) -> Note | None:
    try:
        names = {name: name_in(fields[name]) for name in _NAMES}
        at, token, takes_s = fields["at"], fields["token"], fields["takes"]
        numbers = type(token) is int and all(
            type(each) in (int, float) and isfinite(each) for each in (at, takes_s)
        )
        if not numbers or token < 0 or takes_s < 0:
            return None
        return Note(at=at - wall_s, token=token, takes_s=takes_s, state=NoteState(fields["state"]), **names)
    except (ValueError, TypeError, KeyError, OverflowError):
        return None
