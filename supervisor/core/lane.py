"""A lane: exchanges or attempts of one kind, one at a time.

It holds what is under way and from when on the next may begin. A lane never loses an answer and
never runs two at once; whoever owns it says what an answer means.
"""

from dataclasses import dataclass
from typing import Self

from supervisor.core.frozen import replace
from supervisor.core.requests import Request

NEVER = float("inf")  # a time that does not come: nothing is wanted
LONG_AGO = -NEVER  # a time before all others: due at once, over for long, or not set yet


@dataclass(frozen=True, slots=True)
class Lane:
    """One lane.

    pending: the exchange that is under way.
    due_at: when the next one is wanted. NEVER: none is wanted.
    stale: the exchange that is under way began before the state that its answer would speak about, so the
        answer can confirm but not contradict.
    """

    pending: Request | None = None
    due_at: float = NEVER
    stale: bool = False

    def ready(self, now: float) -> bool:
        """Whether the next exchange is to begin now."""
        return self.pending is None and self.due_at <= now

    @property
    def deadline(self) -> float:
        """When this lane wants a turn; while an exchange is under way its answer is that turn."""
        return self.due_at if self.pending is None else NEVER

    def begin(self, request: Request) -> Self:
        """The exchange is under way; nothing further is wanted until the owner says so."""
        assert self.pending is None, f"{self.pending} is under way, cannot begin {request}"
        return replace(self, pending=request, due_at=NEVER, stale=False)

    def finish(self, due_at: float = NEVER) -> Self:
        """The exchange is over. The earlier of two wishes for the next one counts."""
        return replace(self, pending=None, due_at=min(self.due_at, due_at), stale=False)

    def schedule_at(self, due_at: float) -> Self:
        """Want the next exchange at ``due_at``, whatever was wanted before."""
        return replace(self, due_at=due_at)

    def schedule_by(self, due_at: float) -> Self:
        """Want the next exchange at ``due_at`` at the latest."""
        return replace(self, due_at=min(self.due_at, due_at))

    def mark_stale(self) -> Self:
        """What is under way was begun before something that has just changed."""
        return replace(self, stale=self.pending is not None)
