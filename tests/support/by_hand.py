"""Lines of hooks written by hand, for tests of the judges that read such lines."""

from collections.abc import Iterable
from dataclasses import replace

from tests.support.tenures import Record

ITEM = "item"


def by_hand(text: str) -> list[Record]:
    """Read a short form: ``AT NODE EVENT-STAGE SESSION TOKEN REASON``, or ``AT NODE STAGE`` of a test."""
    return numbered(_record(*line.split()) for line in text.splitlines())


def numbered(records: Iterable[Record]) -> list[Record]:
    """Give each record its place in the file."""
    return [replace(record, line=number) for number, record in enumerate(records)]


def _record(at: str, node: str, what: str, session: str = "", token: str = "0", reason: str = "") -> Record:
    if not session:
        return Record(what, None, float(at), node, "")
    event, _, stage = what.rpartition("-")
    stage, _, code = stage.partition("=")  # end=1: the hook failed
    code = code or ("0" if stage == "end" else "")
    return Record(
        stage, int(code) if code else None, float(at), node, event, ITEM, event, reason, session, int(token)
    )
