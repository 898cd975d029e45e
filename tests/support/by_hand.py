"""Lines of hooks written by hand, for tests of the judges that read such lines."""

from dataclasses import replace

from tests.support.tenures import Record

ITEM = "item"


def by_hand(text: str) -> list[Record]:
    """Read a short form: ``AT NODE EVENT-STAGE SESSION TOKEN REASON SLOT``; ``AT NODE STAGE`` of a test."""
    return [replace(_record(*line.split()), line=n) for n, line in enumerate(text.splitlines())]


def _record(
    at: str, node: str, what: str, session: str = "", token: str = "0", reason: str = "", slot: str = ""
) -> Record:
    if not session:
        return Record(what, None, float(at), node, "")
    event, _, stage = what.rpartition("-")
    stage, _, code = stage.partition("=")  # end=1: the hook failed
    code = code or ("0" if stage == "end" else "")
    record = Record(
        stage, int(code) if code else None, float(at), node, event, ITEM, event, reason, session, int(token)
    )
    return replace(record, slot=slot)
