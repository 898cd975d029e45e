"""A lane: exchanges of one kind, one at a time.

A lane knows which exchange is under way and from when on the next one may begin. A lane never loses an answer
and never has two exchanges under way, unless its owner gives up one that hangs, and takes a new lane. Its
owner interprets each answer.
"""

from typing import Self

from supervisor.core.frozen import dataclass, replace
from supervisor.core.requests import Request
from supervisor.core.times import NEVER


@dataclass(frozen=True, slots=True)
class Lane:
    """One lane."""

    pending: Request | None = None  # the exchange that is under way
    due_at: float = NEVER  # when the next one is wanted. NEVER: none is wanted
    # The exchange under way began before the present state, so its answer can confirm that state but not
    # contradict it.
    stale: bool = False

    def ready(self, now: float) -> bool:
        """Return whether the next exchange is due and none is under way."""
        return self.pending is None and self.due_at <= now

    @property
    def deadline(self) -> float:
        """When the next exchange is due. NEVER: an exchange is under way, or none is wanted."""
        return self.due_at if self.pending is None else NEVER

    def begin(self, request: Request) -> Self:
        """Note that the exchange is under way; no further one is wanted until the owner schedules it."""
        assert self.pending is None, f"{self.pending} is under way, cannot begin {request}"
        return replace(self, pending=request, due_at=NEVER, stale=False)

    def finish(self, due_at: float = NEVER) -> Self:
        """Note that the exchange is over; the earlier of two times for the next one counts."""
        return replace(self, pending=None, due_at=min(self.due_at, due_at), stale=False)

    def schedule_at(self, due_at: float) -> Self:
        """Schedule the next exchange for ``due_at`` instead of any former schedule."""
        return replace(self, due_at=due_at)

    def schedule_by(self, due_at: float) -> Self:
        """Schedule the next exchange for ``due_at`` at the latest."""
        return replace(self, due_at=min(self.due_at, due_at))

    def mark_stale(self) -> Self:
        """Note that the exchange under way began before the present state."""
        return replace(self, stale=self.pending is not None)
