"""The claim of one contender: what it knows of its key's tenure record, and what it owes to that record.

``TRANSITIONS`` draws how its session stands to the record. A contender with ``fence`` looks at the record
before a session's first try. Its acquire writes our record where there is none, and otherwise leaves that of
another session in place, behind which a guard waits. Its release takes ours away. A session that ended in
another way, or whose writes have no answer, may be named by a record for which another node waits. So once
the session is destroyed, and no late write can name it any more, the record is read and put right.

The claim has one lane: for looks, for the watch of a holder, and for what this node must write in the place
of what it has read (``correction``). That is a check-and-set, so it never overwrites what somebody else has
said. A contender without a fence keeps no record, and sees to those of others in the same way.
"""

from collections.abc import Mapping
from enum import StrEnum
from typing import Any

from supervisor.core.claim.guard import Guard
from supervisor.core.claim.memory import Memory
from supervisor.core.claim.record import ABSENT, TenureRecord, in_whole_ms, merge
from supervisor.core.frozen import dataclass, replace
from supervisor.core.lease import Lease
from supervisor.core.lock.base import IDLE_PAUSE_S, WAIT_S, WATCH_S
from supervisor.core.machines.lane import Lane
from supervisor.core.machines.machine import next_state
from supervisor.core.machines.session import Session, Terms
from supervisor.core.machines.tenure import Tenure
from supervisor.core.outcomes import (
    Denied,
    Done,
    KeyView,
    LostRace,
    Outcome,
    RecordExists,
    TenureShown,
    View,
    Won,
)
from supervisor.core.requests import Acquire, MarkTenure, Release, Request, Rewrite, WatchTenure
from supervisor.core.settings import NOWHERE, ItemSettings, Place
from supervisor.core.times import LONG_AGO, NEVER

VALUE_BYTES_MAX = 262_144  # the longest value that a transaction surely carries (agent/txn_endpoint.go)
LOOK_PAUSE_S = 0.25  # whoever takes the free key reads the record anyway; a fence leaves a loser far longer
GUARD_LOOK_S = 5.0  # a holder that writes its record when its guard ends need not change the key


class Standing(StrEnum):
    """How the session of a contender stands to the tenure record."""

    UNSEEN = "unseen"
    CLEAR = "clear"
    OWING = "owing"
    SETTLING = "settling"


class StandingEnd(StrEnum):
    """The cause that ends a standing."""

    LOOKED = "the record is read, and right"
    SENT = "a record of the session, or an acquire over another's, is sent"
    RELEASED = "its record went with the lock"
    DESTROYED = "the destroy is over, and a tenure record may name it"
    SETTLED = "no tenure record says that it acts"
    ABANDONED = "the record is left to the next process"
    NEXT_ASKED = "another session is asked for"


TRANSITIONS: Mapping[Standing, Mapping[StandingEnd, Standing]] = {
    Standing.UNSEEN: {
        StandingEnd.LOOKED: Standing.CLEAR,
        StandingEnd.SENT: Standing.OWING,
    },
    Standing.CLEAR: {
        StandingEnd.SENT: Standing.OWING,
        StandingEnd.NEXT_ASKED: Standing.UNSEEN,
    },
    Standing.OWING: {
        StandingEnd.RELEASED: Standing.CLEAR,
        StandingEnd.DESTROYED: Standing.SETTLING,
    },
    Standing.SETTLING: {
        StandingEnd.SETTLED: Standing.CLEAR,
        StandingEnd.ABANDONED: Standing.OWING,
    },
}


@dataclass(frozen=True, slots=True)
class Claim:
    """The known tenure record of one key, and the standing of our session to it."""

    here: Place = NOWHERE  # where this process runs
    standing: Standing = Standing.UNSEEN
    lane: Lane = Lane()
    record: TenureRecord | None = None  # as it was read or written last. None: it is not known
    record_index: int = 0  # its ModifyIndex, by which it is written over. 0: not known
    # Our session, while it holds and its record is watched. None: the record is not watched.
    watches: str | None = None
    index: int = 0  # the index from which that watch waits. 0: it is answered at once
    over: bool = False  # the newest acquire went over another's record, or wrote ours, so one may be there
    unflagged: bool = False  # an acquire was refused because of a record that the flags do not tell of
    settling: str | None = None  # the destroyed session whose record is being settled
    settle_by: float = NEVER  # until when a contender that departs waits for that
    guard: Guard | None = None  # what the tenure waits for that has acquired over another's record
    disowned: str | None = None  # the session of a record of which nothing acts, by an operator's word
    memory: Memory = Memory()  # of a long record
    returned_at: float = LONG_AGO  # when Consul answered again after it had been silent

    @property
    def owes(self) -> bool:
        """Whether a record that names our session may be there, or the flags of another's record."""
        return self.standing in (Standing.OWING, Standing.SETTLING)

    @property
    def settles(self) -> bool:
        return self.standing is Standing.SETTLING

    def names(self, session: str) -> bool:
        """Return whether the record names this session, as far as this node knows."""
        return self.record is not None and self.record.session == session != ""

    def said_s(self, session: str) -> float | None:
        """Return how long others surely wait by the record of this session. None: it is not known."""
        if self.record is None:
            return None
        return self.record.lock_delay_s if self.names(session) else 0.0

    # --- what a write carries -----------------------------------------------------------------------

    def goes_over(self, view: View | None) -> bool:
        """Return whether the acquire that is due leaves the record of another session in place."""
        return self.unflagged or (isinstance(view, KeyView) and view.has_record_flags and not view.session)

    def for_acquire(self, request: Request, view: View | None, ours: TenureRecord | None) -> Request:
        """Return the acquire: with our record where there is none, else over that of another session.

        The key's flags tell of a record. A holder that still has the key is expected to release it in order.
        """
        if not isinstance(request, Acquire):
            return request
        if self.goes_over(view):
            return replace(request, over_record=True, is_long=self._may_be_long(view))
        if self.memory.waits_for(request.at) is not None:
            return request  # nothing of this node acts yet, and what the record said is known to it alone
        return replace(request, record=ours, is_long=self._is_long(ours))

    def _may_be_long(self, view: View | None) -> bool:
        """Return whether the key keeps the flags by which its record may say more than a minute."""
        return self._is_long(self.record) or (isinstance(view, KeyView) and view.is_long)

    @staticmethod
    def _is_long(record: TenureRecord | None) -> bool:
        return record is not None and record.is_long

    def for_rewrite(self, request: Rewrite, view: View | None, ours: TenureRecord | None) -> Rewrite:
        """Return the rewrite with our record, if this node keeps one or has kept one in this tenure.

        A record never shrinks while its tenure lasts, and keeps its target.
        """
        kept = self.record if self.names(request.session) else None
        record = merge(kept, ours) if kept and ours else ours or kept
        request = replace(request, record_index=self.record_index)
        if record is None:
            return replace(request, ends_record=isinstance(view, KeyView) and view.has_record_flags)
        return replace(request, record=self._next(record), is_long=record.is_long)

    def _next(self, record: TenureRecord) -> TenureRecord:
        return replace(record, serial=1 + (0 if self.record is None else self.record.serial))

    def for_release(self, request: Request, view: View | None, session: Session) -> Request | None:
        """Return the release, which takes our record away and keeps the flags of another's.

        None: a read must come first, because a process that goes on with a session on record knows no flags.
        """
        if not isinstance(request, Release):
            return request
        ours, unread = self.names(session.id), not isinstance(view, KeyView) or not view.index
        if self.owes and unread and not ours and not session.unread:
            return None
        marked = view.has_record_flags if isinstance(view, KeyView) and not unread else self.owes
        has_entry = view is not None and view.has_entry(session.id)
        over = not ours and (marked or (self.over and not has_entry))
        if ours and len(request.value) > VALUE_BYTES_MAX:
            request = replace(request, value=b"")  # a transaction limits it, and nobody leads by it any more
        is_long = over and self._may_be_long(view)
        return replace(request, ends_record=ours, over_record=over, is_long=is_long)

    def sent(self, request: Request) -> "Claim":
        """Note an acquire or a rewrite, with which a debt may begin."""
        if not isinstance(request, Acquire | Rewrite):
            return self
        over = request.record is not None or (isinstance(request, Acquire) and request.over_record)
        claim = replace(self, over=over) if isinstance(request, Acquire) else self
        return become(claim, StandingEnd.SENT) if over and not self.owes else claim

    def lacks(self, view: View | None, session: str, ours: TenureRecord | None) -> bool:
        """Return whether a holder must write its record, or the flags that tell of it."""
        if self.record is None or not isinstance(view, KeyView):
            return False
        if ours is None:  # the file has no fence any more, and the tenure keeps what it began with
            named = self.names(session)
            return named != view.has_record_flags and (named or self.record == ABSENT)
        if not self.names(session) or not view.has_record_flags:
            return True
        return merge(self.record, ours) != self.record or view.is_long != self.record.is_long

    # --- what the answers to writes show ------------------------------------------------------------

    def tried(self, request: Request, outcome: Outcome) -> "Claim":
        """Note what an acquire has written, or why it was refused."""
        if isinstance(outcome, RecordExists):
            return replace(self, unflagged=True)
        if not isinstance(request, Acquire) or not isinstance(outcome, Won) or request.record is None:
            return self
        claim = replace(self, memory=replace(self.memory, lost=None))
        return claim._with_record(request.record, outcome.modify_index)

    def rewritten(self, request: Rewrite, outcome: Outcome) -> "Claim":
        """Note that the rewrite has been carried out, or read the record again if it was another one."""
        if isinstance(outcome, RecordExists):
            lane = self.lane.mark_stale() if self._is_looking else Lane(due_at=LONG_AGO)
            return replace(self, record=None, record_index=0, index=0, lane=lane)
        if not isinstance(outcome, Done) or (request.record is None and not request.ends_record):
            return self
        claim = replace(self, memory=replace(self.memory, lost=None))  # what it waited for is over
        return claim._with_record(request.record or ABSENT, outcome.record_index)

    def released(self, request: Request | None, outcome: Outcome) -> "Claim":
        """Note that our record is gone, if the release took it away."""
        if not isinstance(request, Release) or not request.ends_record or outcome != Done():
            return self
        claim = replace(self, record=None)
        return become(claim, StandingEnd.RELEASED) if self.owes else claim

    def destroyed(self, session: str, settle_by: float, now: float) -> "Claim":
        """Begin to settle what the destroyed session may have left behind."""
        if self.standing is not Standing.OWING:
            return self
        lane = self._kept_look.schedule_by(now)
        return become(self, StandingEnd.DESTROYED, settling=session, settle_by=settle_by, lane=lane)

    def next_asked(self) -> "Claim":
        """Begin anew for the session that is asked for now."""
        return self if self.standing is Standing.UNSEEN else become(self, StandingEnd.NEXT_ASKED, over=False)

    def _with_record(self, record: TenureRecord, index: int = 0) -> "Claim":
        """Return the claim with the record that we have written.

        index: its ModifyIndex. 0: not known, so the record is read at once, because a watch on it may have
        told of this write already, and would wait for the next one.
        """
        lane = self.lane.mark_stale() if index or self._is_looking else Lane(due_at=LONG_AGO)
        memory = self.memory.read(record, index)
        return replace(self, record=record, record_index=index, index=index, lane=lane, memory=memory)

    # --- when the record is read --------------------------------------------------------------------

    def observe(
        self, before: View | None, view: View | None, session: str | None, now: float, *, is_free: bool
    ) -> "Claim":
        """Take in a view of the key. A node that does not hold reads the record once after each change."""
        if not isinstance(view, KeyView):
            return self
        changed = not isinstance(before, KeyView) or view.modify_index != before.modify_index
        claim = self
        if (view.is_long or self.memory.view is not None) and not self.memory.doubts(view):
            claim = replace(self, memory=self.memory.seen(view))
        if self.unflagged and (changed or not is_free):
            claim = replace(claim, unflagged=False)
        holds = bool(session) and view.session == session
        if holds or self.watches or not view.has_record_flags or not changed:
            return claim
        lane = self.lane.mark_stale().schedule_by(now + LOOK_PAUSE_S)
        return replace(claim, record=None, lane=lane)

    def compared(self, view: View, session: str | None, asked_s: float, now: float) -> "Claim":
        """Compare a consistent view with what is remembered of a long record: see ``Memory``."""
        if not isinstance(view, KeyView) or not self.memory.doubts(view):
            return self
        claim = self._without_word(session, asked_s, now)
        return replace(claim, memory=claim.memory.seen(view))

    def _without_word(self, session: str | None, asked_s: float, now: float) -> "Claim":
        memory = self.memory.after_loss(session, self.here, asked_s, now)
        guard, lost = self.guard, memory.waits_for(now)
        if guard is not None and lost is not None:
            guard = guard.behind(lost.lease_s, lost.former)
        return replace(self, memory=memory, guard=guard, index=0, lane=self._kept_look.schedule_by(now))

    def following(self, view: View | None, session: str, now: float, *, fenced: bool) -> "Claim":
        """Watch the record of this session from now on, if it holds and has a record or is to have one."""
        if not isinstance(view, KeyView) or view.session != session or self.watches == session:
            return self
        reads = fenced or view.has_record_flags or self.guard is not None
        return self.followed(session, now) if reads else self

    def followed(self, session: str, now: float) -> "Claim":
        """Watch the record of this session from now on, whether or not it is seen to hold."""
        return replace(self, watches=session, lane=self._kept_look.schedule_by(now))

    def given_up(self) -> "Claim":
        """Watch no more. What the record says is kept, because the release that follows depends on it."""
        claim = replace(self, guard=None)
        return replace(claim, watches=None, index=0, lane=self._kept_look) if self.watches else claim

    def look_again(self, now: float) -> "Claim":
        """Read the record now, because the watch on it may hang."""
        pending = self.lane.pending
        if isinstance(pending, MarkTenure) or self._is_looking:
            return self  # it is under way
        if pending is None and not self.index and self.lane.due_at != NEVER:
            return self  # it waits for its time, after one without an answer
        return replace(self, lane=Lane(due_at=now), index=0)

    def returned(self, now: float) -> "Claim":
        """Note that Consul answers again."""
        guard = self.guard and replace(self.guard, returned_at=now)
        return replace(self, returned_at=now, guard=guard)

    def stalled(self) -> "Claim":
        return replace(self, lane=self.lane.mark_stale())

    def silenced(self) -> "Claim":
        return replace(self, lane=self.lane.schedule_at(NEVER))

    def look_soon(self, now: float) -> "Claim":
        """Read the record now, because the session may try once it has looked."""
        return replace(self, lane=self.lane.schedule_by(now))

    @property
    def _kept_look(self) -> Lane:
        """The empty lane, but for a look that is under way: two never go side by side."""
        return self.lane.mark_stale() if self._is_looking else Lane()

    @property
    def _is_looking(self) -> bool:
        return isinstance(self.lane.pending, WatchTenure) and not self.lane.pending.index

    def begin(
        self, terms: Terms, view: View | None, right: TenureRecord | None, now: float, *, awaited: bool
    ) -> tuple["Claim", Request | None]:
        """Begin what is due: to write ``right`` over the record that was read, or to read the record.

        awaited: a first try waits for a look.
        """
        may_write = self.record_index or self.record == ABSENT
        if right is not None and may_write and not isinstance(self.lane.pending, MarkTenure):
            right = self._next(right)
            mark = MarkTenure(terms.item, now, terms.exchange_s, terms.key, right, self.record_index)
            return replace(self, lane=Lane().begin(mark)), mark  # a watch is given up for it
        lane = self.lane
        if awaited and lane == Lane():
            lane = Lane(due_at=now)
        if not lane.ready(now):
            return self, None
        if self.watches and self.index:
            look = WatchTenure(terms.item, now, WATCH_S, terms.key, self.index, WAIT_S)
        elif self.watches or self.settles or awaited or self._must_look(view):
            look = WatchTenure(terms.item, now, terms.exchange_s, terms.key)
        else:
            return replace(self, lane=Lane()), None
        return replace(self, lane=lane.begin(look)), look

    def _must_look(self, view: View | None) -> bool:
        """Return whether this node does not know the record, or the holder waits behind that of another."""
        if not isinstance(view, KeyView) or not view.has_record_flags:
            return False
        return self.record is None or (bool(view.session) and self.record.session != view.session)

    # --- what a look shows --------------------------------------------------------------------------

    def answered(
        self,
        terms: Terms,
        request: Request,
        outcome: Outcome,
        view: View | None,
        now: float,
        session: str,
        asked_s: float,
        *,
        awaited: bool,
    ) -> "Claim":
        """Take in the record, and go on watching it. Read again what could not be read or written.

        session, asked_s: see ``Memory.after_loss``.
        """
        stale, lane = self.lane.stale, self.lane
        asks_on = self.watches or self.settles or (awaited and isinstance(request, WatchTenure))
        if isinstance(outcome, Denied) and not asks_on:
            lane = Lane()  # until the key changes
        elif not isinstance(outcome, TenureShown | Done):
            lane = lane.finish(now if isinstance(outcome, LostRace) else now + terms.retry_s)
        if isinstance(request, MarkTenure):
            if isinstance(outcome, Done):
                return self._with_record(request.record)
            known = self.record if self.watches else None
            return replace(self, record=known, record_index=0, index=0, lane=lane)
        if not isinstance(outcome, TenureShown):
            return replace(self, lane=lane, index=0)
        if stale:
            return replace(self, lane=lane.finish(now), index=0)
        claim = replace(self, record=outcome.record or ABSENT, record_index=outcome.modify_index)
        if self.memory.contradicts(outcome):
            claim = claim._without_word(session, asked_s, now)
        claim = replace(claim, memory=claim.memory.read(outcome.record, outcome.modify_index))
        if not self.watches:
            return replace(claim, lane=Lane(due_at=now + GUARD_LOOK_S if claim._must_look(view) else NEVER))
        fell = outcome.index < self.index
        pause_s = IDLE_PAUSE_S if outcome.index == self.index else 0.0  # it has waited for nothing
        return replace(claim, lane=Lane(due_at=now + pause_s), index=0 if fell else outcome.index)

    def concluded(self) -> "Claim":
        """End a look before the first try, or behind the destroy, because the record is right."""
        if self.settles:
            return become(self, StandingEnd.SETTLED, settling=None, settle_by=NEVER)
        return become(self, StandingEnd.LOOKED) if self.standing is Standing.UNSEEN else self

    def abandoned(self) -> "Claim":
        return become(self, StandingEnd.ABANDONED, settling=None, settle_by=NEVER, lane=Lane())

    # --- a tenure begins -----------------------------------------------------------------------------

    def begun(
        self, view: View, session: str, free_at: float, ours: TenureRecord | None, now: float
    ) -> "Claim":
        """Return the claim of a tenure that begins, with a guard if somebody else may be acting.

        ``over`` counts beside the flags, because the acquire's answer may be lost, and another program's PUT
        may clear the flags before this node reads them. free_at: that of the guard.
        """
        if self.names(session) or not isinstance(view, KeyView):
            return self
        lost = self.memory.waits_for(now)
        if not view.has_record_flags and not self.over and lost is None:
            return replace(self, record=None, guard=None)
        is_long = view.is_long or self._is_long(self.record)
        guard = Guard(now, self.here, None if ours is None else ours.target, free_at, is_long=is_long)
        was_lost = self.memory.lost is not None and now < self.memory.lost.ends_at
        guard = replace(guard, returned_at=self.returned_at, is_blind=was_lost)
        if lost is not None:
            guard = guard.behind(lost.lease_s, lost.former)
        return replace(self, record=None, guard=guard)

    def keeps_out(self, view: View, session: str) -> bool:
        """Return whether a rival that has the key waits until our lease is over, behind our record."""
        return isinstance(view, KeyView) and view.has_record_flags and self.names(session)

    def ours(
        self, settings: ItemSettings, lease: Lease, session: Session, tenure: Tenure | None
    ) -> TenureRecord | None:
        """Return the record of our session. None: the file has no fence, so there is none."""
        fence = settings.fence
        if fence is None:
            return None
        return TenureRecord(
            session=session.id,
            lock_delay_s=in_whole_ms(lease.asked_s),
            lose_time_s=in_whole_ms(lease.lose_time_s),
            margin_s=in_whole_ms(lease.margin_s),
            target=fence.target or session.node,
            node=session.node,
            place=self.here,
            token=0 if tenure is None else tenure.token,
        )


def become(claim: Claim, cause: StandingEnd, **changes: Any) -> Claim:
    """Return the claim in the standing that follows for this cause, with these changes of other fields.

    No other line of the core sets the standing, except where a process that starts goes on with a record.
    """
    return replace(claim, standing=next_state(TRANSITIONS, claim.standing, cause), **changes)
