"""The value of a fleet's key of shots, which any client of Consul may have written."""

import json
from typing import Any

import pytest

from supervisor.config.formats.shot_notes import BYTES_MAX, ForeignNotes, decoded, encoded
from supervisor.core.claim.notes import NOTES_MAX, Note, NoteState
from supervisor.core.frozen import replace

NOTE = Note("m", "db1", "b", "bmc-1", "db2 1a2b", 12.5, 7, 22.0, NoteState.DONE, "pdu after bmc failed")


def value(*shots: Any, **more: Any) -> bytes:
    return json.dumps({"version": 1, "shots": list(shots), **more}).encode()


def plain(**fields: Any) -> dict[str, Any]:
    (found,) = json.loads(encoded((NOTE,), 0.0))["shots"]
    return {**found, **fields}


def test_a_note_is_read_as_it_was_written_by_the_clock_of_whoever_reads() -> None:
    notes = (NOTE, replace(NOTE, machine="", boot="", state=NoteState.SHOOTING, method=""))
    assert decoded(encoded(notes, 1000.0), 1000.0) == notes
    assert decoded(encoded(notes, 1000.0), 900.0)[0].at == NOTE.at + 100.0


@pytest.mark.parametrize(
    "found", [b"", b"mine", b"[]", b"null", b'{"version": 2, "shots": []}', b"[" * 10_000]
)
def test_what_is_no_such_document_is_another_program_s(found: bytes) -> None:
    with pytest.raises(ForeignNotes):
        decoded(found, 0.0)
    with pytest.raises(ForeignNotes):
        decoded(value(pad="x" * BYTES_MAX), 0.0)


@pytest.mark.parametrize(
    "wrong",
    [
        {"at": float("nan")}, {"at": "now"}, {"at": 10**400}, {"token": -1}, {"token": 1.0}, {"token": True},
        {"takes": -1.0}, {"state": "won"}, {"boot": None}, {"host": "a\nb"}, {"target": "x" * 300}, {"by": 7},
    ],
)  # fmt: skip
def test_a_note_in_which_a_field_breaks_its_rule_is_left_out(wrong: dict[str, Any]) -> None:
    assert decoded(value(plain(**wrong), plain(), "x", None), 0.0) == (NOTE,)


def test_there_are_never_more_notes_than_are_kept() -> None:
    shots = [plain(token=number) for number in range(2 * NOTES_MAX)]
    assert [each.token for each in decoded(value(*shots), 0.0)] == [*range(NOTES_MAX, 2 * NOTES_MAX)]
