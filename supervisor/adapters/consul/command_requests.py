"""The requests of an operator's commands, which no contender sends."""

from supervisor.core.frozen import dataclass
from supervisor.core.requests import Request, SlotRecord, SlotRequest


@dataclass(frozen=True, slots=True)
class ReadSessions(Request):
    """``GET /v1/session/list``."""


@dataclass(frozen=True, slots=True)
class WriteSlotRecord(SlotRequest):
    """A change of ``.lock``, if its index still is ``index``."""

    slot_record: SlotRecord
    index: int
