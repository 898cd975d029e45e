"""The view that a client of Consul has of one hand-over. The client follows the key by blocking queries.

So it measures the gap that the application's own clients see.
"""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass

from supervisor.consul.awaiting import wait_until
from supervisor.consul.query import LOOKUP_S, LookupFailed
from supervisor.core.lease import lease_of
from supervisor.core.outcomes import KeyView, View
from supervisor.drill.live.plan import LivePlan
from supervisor.drill.promises import NEVER, Line, Played, Promise, at_most
from supervisor.errors import CommandError


@dataclass(frozen=True, slots=True)
class Handover:
    """One hand-over as a client saw it.

    played: its time line and its promises.
    gap_s: how long no node was holder. None: no node has taken over.
    holder: the session that holds at its end. Blank: none does.
    node: the node of that session, for people.
    token: the fencing token of the new holder. None: no node has taken over.
    """

    played: Played
    gap_s: float | None
    holder: str
    node: str
    token: int | None


class Sight:
    """The key of an election during one hand-over, as a client that follows the key sees it."""

    def __init__(self, plan: LivePlan, title: str, former: str) -> None:
        """Expect a new holder after the session ``former``."""
        self._plan, self._title, self._former = plan, title, former
        self.began_at = time.monotonic()
        self.answered = asyncio.Event()
        self.freed_at: float | None = None
        self.taken_at: float | None = None
        self.view = KeyView(0)
        self.lines: list[Line] = []
        self.promises: list[Promise] = []

    def see(self, view: View) -> bool:
        """Note an answer of Consul, and return whether another node holds."""
        assert isinstance(view, KeyView), "an election has one key"
        now, is_former = time.monotonic(), view.session == self._former
        self.view = view
        self.answered.set()
        if not view.session and self.freed_at is None:
            self.freed_at = now
            self.mark("", "no node is holder in Consul")
        if view.session and not is_former:
            self.taken_at = now
            self.mark(self.name(view.session), f"is holder in Consul, fencing token {view.modify_index}")
        return self.taken_at is not None

    def name(self, session: str) -> str:
        """Return the name of a session's node, for people."""
        names = {self._plan.ours.id: self._plan.here, self._plan.target.id: self._plan.there}
        return names.get(session, session)

    def mark(self, node: str, text: str) -> None:
        """Add a line to the time line."""
        self.lines.append(Line(time.monotonic() - self.began_at, node, text))

    @property
    def gap_s(self) -> float | None:
        """How long no node was holder. 0: every answer showed a holder."""
        if self.taken_at is None:
            return None
        return 0.0 if self.freed_at is None else self.taken_at - self.freed_at

    def compare(self, expected: str, token: int) -> None:
        """Add the promises that both hand-overs have in common.

        expected: the session that was to take over.
        token: the fencing token of the tenure before.
        """
        holder = self.view.session
        found = self.name(holder) if holder else "nobody"
        if holder and self.taken_at is None:
            found = f"{found} still holds it"
        is_expected = self.taken_at is not None and holder == expected
        self.promises.append(Promise("the next holder", self.name(expected), found, is_expected))
        delay_s = lease_of(self._plan.item).acquire_delay_s
        self.promises.append(at_most("no node is holder (acquire_delay)", delay_s, self.gap_s))
        newer = self.view.modify_index if self.taken_at is not None else None
        shown = NEVER if newer is None else str(newer)
        is_greater = newer is not None and newer > token
        self.promises.append(Promise("the fencing token", f"more than {token}", shown, is_greater))

    def handover(self, play: str) -> Handover:
        """Return the hand-over as the client saw it."""
        played = Played(play, self._title, tuple(self.promises), tuple(self.lines))
        token = None if self.taken_at is None else self.view.modify_index
        holder = self.view.session
        return Handover(played, self.gap_s, holder, self.name(holder) if holder else "", token)


@asynccontextmanager
async def followed(plan: LivePlan, sight: Sight, within_s: float) -> AsyncIterator[asyncio.Task[bool]]:
    """Follow the key until another node holds it, and begin the block after Consul's first answer.

    Raises LookupFailed.
    """
    following = asyncio.create_task(wait_until(plan.consul, plan.item, sight.see, within_s))
    answered = asyncio.create_task(sight.answered.wait())
    try:
        await asyncio.wait((following, answered), timeout=LOOKUP_S, return_when=asyncio.FIRST_COMPLETED)
        if following.done():
            await following
        if not sight.answered.is_set():
            raise LookupFailed(f"cannot ask Consul: no answer within {LOOKUP_S:g} s")
        sight.began_at = time.monotonic()
        yield following
    finally:
        for task in (following, answered):
            task.cancel()
            with suppress(asyncio.CancelledError, CommandError):
                await task
