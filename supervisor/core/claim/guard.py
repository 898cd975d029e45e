"""The guard: what a node that has acquired over another's tenure record waits for before it acts.

The guard ends with the first of these, and with nothing else. The former holder says that it has ended; its
machine is off, by the word of the fence; the former holder's lease is surely over; an operator confirms that
the machine is off; or the record turns out to be our own, of an acquire whose answer was lost. A record that
vanishes ends nothing. docs/lease.md proves that no two act.
"""

from enum import StrEnum
from math import floor

from supervisor.core.actions import Action, KillHook, Previous
from supervisor.core.claim.notes import Boot, Shot
from supervisor.core.claim.record import UNREADABLE, State, TenureRecord
from supervisor.core.frozen import dataclass, replace
from supervisor.core.lease import OUTAGE_LOCKOUT_MAX_S, Lease
from supervisor.core.machines import phases
from supervisor.core.machines.tenure import Tenure
from supervisor.core.settings import Fence, ItemSettings, Place
from supervisor.core.times import LONG_AGO, NEVER

NOTE_S = 60.0  # between two notes of a long wait: what a crash of this node costs at most
HEARD_S = 5.0  # behind the end of an outage, in which a holder that lives hears of Consul as well


class GuardEnd(StrEnum):
    """How the tenure before ended. The words are part of the contract with hooks."""

    RELEASED = "released"  # in order
    SAID = "said"
    FENCED = "fenced"
    WAITED = "waited"
    CONFIRMED = "confirmed"
    NONE = "none"  # there was none


@dataclass(frozen=True, slots=True)
class Shots:
    """The runs of the fence for the guards of other items: see ``core.claim.shots``."""

    under_way: frozenset[Boot] = frozenset()
    over: tuple[Shot, ...] = ()
    granted: frozenset[Boot] | None = None  # for which a run may begin now. None: for each
    limited: frozenset[Boot] = frozenset()  # for which none may begin by ``fence_limit``


@dataclass(frozen=True, slots=True)
class Guard:
    """What a node that waits behind a tenure record knows of it."""

    # When the answer to the acquire arrived, or a record of another tenure. By then its holder had lost the
    # key, so its newest contact is older.
    lost_at: float
    here: Place  # this machine, which is never shot
    target: str | None  # how this machine is named to the fence. None: it cannot be shot
    # When this node saw the key free, which a holder that lives sees as well. The acquire may come later, by
    # Consul's lock-delay. NEVER: this node did not see that.
    free_at: float = NEVER
    record: TenureRecord | None = None  # None: it has not been read yet
    stopping_at: float = NEVER  # when the record was first seen to say that the holder stops
    seen_at: float = LONG_AGO  # when the request was sent whose answer has shown the record last
    shoots: bool = False  # the time of the fence has come
    wants_shot: bool = False  # an attempt of the fence may begin, once that is granted
    shot_due_at: float = NEVER  # since when its next attempt is due. NEVER: none is
    aim: str | None = None  # the target of the newest attempt of the fence. None: it has made none
    end: GuardEnd | None = None  # how the guard has ended. None: it lasts
    is_long: bool = False  # by the key's flags the record may say more than a minute
    longest_s: float | None = None  # the longest lease that a record named which this guard has read
    waited_s: float = 0.0  # how long guards before this one have waited for that lease
    noted_s: float = 0.0  # how long this one and those have waited for it, as the record is to say
    is_blind: bool = False  # Consul has lost what it said of the former holder, so nobody is shot
    # The session of that holder, whose word alone counts. Blank: it is not known. None: any word counts.
    word_of: str | None = None
    returned_at: float = LONG_AGO  # when Consul answered this node again after it had been silent
    shots: Shots = Shots()  # those of the guards of other items
    has_shot: bool = False  # its own fence has succeeded
    method: str = ""  # the newest one that was tried, or that has succeeded: see ``Previous``

    def behind(self, lease_s: float, former: TenureRecord | None) -> "Guard":
        """Wait for so long, and shoot nobody, because Consul has lost what it said of the former holder."""
        longest_s, word_of = max(self.longest_s or 0.0, lease_s), "" if former is None else former.session
        record = self.record or former
        return replace(self, is_blind=True, word_of=word_of, longest_s=longest_s, record=record)

    def observe(self, record: TenureRecord | None, session: str, sent_at: float, now: float) -> "Guard":
        """Take the record as it is now. None: it is absent, which ends nothing, and then nobody is shot.

        session: ours. A record that names it was written with an acquire whose answer was lost.
        """
        end, read = self.end, self.record
        if record is not None and record.session == session:
            return replace(self, end=end or GuardEnd.NONE)
        if record is None or (read is not None and not record.session):
            # A holder that lives cannot say any more that it has ended.
            record = replace(read or UNREADABLE, target=None)
        if end is GuardEnd.WAITED and read is None:
            end = None  # nobody knew what it says
        if end is None and record.state is State.ENDED and self.word_of in (None, record.session):
            end = GuardEnd.SAID
        stopping_at = min(self.stopping_at, now) if record.state is State.STOPPING else self.stopping_at
        guard = replace(self, record=record, stopping_at=stopping_at, end=end)
        if record.session:
            longest_s = max(self.longest_s or 0.0, record.lock_delay_s)
            guard = replace(guard, longest_s=longest_s, is_long=self.is_long or record.is_long)
        if read is None or record.session != read.session:
            waited_s = max(0.0, record.waited_s - (now - self.lost_at))  # a guard before may have gone on
            guard = replace(guard, waited_s=waited_s, noted_s=record.waited_s)
        if read is not None and record.session != read.session:  # it counts anew
            stopping_at = now if record.state is State.STOPPING else NEVER
            guard = replace(guard, lost_at=now, free_at=now, stopping_at=stopping_at)
        return replace(guard, seen_at=max(self.seen_at, sent_at))

    def waits_until(self, fence: Fence | None) -> float:
        """Return when the former holder's lease is over for certain. NEVER: time does not end this guard."""
        if fence is not None and fence.required:
            return NEVER
        unread_s = OUTAGE_LOCKOUT_MAX_S if self.is_long else UNREADABLE.lock_delay_s
        return self.lost_at - self.waited_s + (unread_s if self.longest_s is None else self.longest_s)

    @property
    def may_shoot(self) -> bool:
        """Whether this node may shoot the machine of the record, which is certainly another one."""
        record = self.record
        if record is None or record.target in (None, self.target) or self.is_blind:
            return False
        return not record.place.is_same_machine(self.here)

    def boot(self, fence: Fence | None) -> Boot | None:
        """Return the boot that a run of the fence would end. None: this guard may shoot nobody."""
        record = self.record
        if fence is None or record is None or record.target is None or not self.may_shoot:
            return None
        place = record.place
        return Boot(place.machine, place.host, place.boot, record.target, fence.methods)

    def is_limited(self, fence: Fence | None) -> bool:
        """Return whether ``fence_limit`` keeps this guard from shooting."""
        return self.end is None and self.boot(fence) in self.shots.limited

    def shoots_at(self, fence: Fence | None) -> float:
        """Return when the fence begins. NEVER: nobody may be shot."""
        record = self.record
        if fence is None or record is None or not self.may_shoot:
            return NEVER
        shoots_at = max(self.lost_at, min(self.lost_at, self.free_at) + fence.after_s)
        if self.is_long:
            shoots_at = max(shoots_at, self.returned_at + HEARD_S + fence.after_s)
        if self.stopping_at != NEVER:
            shoots_at = max(shoots_at, self.stopping_at + record.stops_s)
        return shoots_at

    def note(self, now: float) -> "Guard":
        """Let the record say now and then how long guards have waited for it, because each wait counts.

        The former holder had lost the key before the first of them began, and it was not back since.
        """
        if self.record is None or now < self.note_due_at:
            return self
        noted_s = floor(1000 * (now - self.lost_at + self.waited_s)) / 1000
        return replace(self, noted_s=min(noted_s, self.record.lock_delay_s))

    def waits_behind(self, record: TenureRecord) -> bool:
        """Return whether this guard has waited for longer than the record says."""
        ours = self.record is not None and self.record.session == record.session
        return ours and record.waited_s < self.noted_s

    @property
    def note_due_at(self) -> float:
        if not self.is_long or self.record is None or self.noted_s >= self.record.lock_delay_s:
            return NEVER
        return self.lost_at - self.waited_s + self.noted_s + NOTE_S

    @property
    def awaits_look(self) -> bool:
        """Whether the fence may begin, but for a look at the record since its attempt is due.

        The machine may have said something meanwhile, or its next boot, and the watch on the record may hang.
        """
        return self.end is None and self.seen_at < self.shot_due_at < NEVER

    def advance(self, tenure: Tenure, settings: ItemSettings, lease: Lease, now: float) -> "Advanced":
        """Run the fence while the guard lasts; once it is over, kill a fence that still runs.

        The scheduler then writes the tenure record, whose answer ends this phase.
        """
        fence, hooks = settings.fence, settings.fence_methods
        sequence = tenure.hooks.settle_any(hooks, now)
        # A record that is gone or names another target proves nothing.
        hits = self.record is not None and self.aim == self.record.target
        guard = self._ended(fence, now, has_shot=tenure.hooks.has_succeeded and hits)
        boot, end = self.boot(fence), guard.end
        tenure, shoots = replace(tenure, hooks=sequence), now >= self.shoots_at(fence)
        guard = replace(guard.note(now), shoots=shoots, wants_shot=False)
        if end is not None:
            if sequence.running is None or tenure.killing:
                return guard, tenure, ()
            return guard, replace(tenure, killing=True), (KillHook(sequence.running),)
        wants = shoots and boot not in self.shots.under_way and sequence.due(now)
        wants = wants and phases.news_is_fresh(tenure, lease, now)
        may_shoot = wants and (self.shots.granted is None or boot in self.shots.granted)
        shot_due_at = min(self.shot_due_at, now) if may_shoot else NEVER
        guard = replace(guard, wants_shot=wants, shot_due_at=shot_due_at)
        if not may_shoot or guard.awaits_look or guard.record is None:
            return guard, tenure, ()
        failed = " and ".join(each.name for each in hooks[: sequence.index])
        method = hooks[sequence.index].name + (f" after {failed} failed" if failed else "")
        guard = replace(guard, aim=guard.record.target, shot_due_at=NEVER, method=method)
        return guard, *phases.start_fence(tenure, settings, lease, guard.previous)

    def _ended(self, fence: Fence | None, now: float, *, has_shot: bool) -> "Guard":
        """Return the guard with its end, if it has one by now. has_shot: its own fence has succeeded."""
        if self.end is not None:
            return self
        if has_shot:
            return replace(self, end=GuardEnd.FENCED, has_shot=True)
        boot, token = self.boot(fence), self.record.token if self.record else 0
        shot = next((each for each in self.shots.over if each.has_ended(boot, token)), None)
        if shot is not None:
            return replace(self, end=GuardEnd.FENCED, method=shot.method)
        return replace(self, end=GuardEnd.WAITED) if now >= self.waits_until(fence) else self

    @property
    def waits_for(self) -> str:
        """Whom the guard waits for, in words."""
        return f"waits for {self.machine}"

    @property
    def machine(self) -> str:
        """The name for people of the machine that it waits for."""
        return (self.record or UNREADABLE).name

    @property
    def previous(self) -> Previous:
        """The facts about the former holder, for the hooks."""
        record = self.record or UNREADABLE
        end = "" if self.end is None else str(self.end)
        host, method = record.place.host, self.method if self.end in (None, GuardEnd.FENCED) else ""
        return Previous(end, record.target or "", record.node or "", host, record.token, method)

    def deadline(self, fence: Fence | None) -> float:
        """Return the next time at which the guard may end or the fence begin. NEVER: it has ended."""
        if self.end is not None:
            return NEVER
        shoots_at = NEVER if self.shoots else self.shoots_at(fence)
        return min(self.waits_until(fence), self.note_due_at, shoots_at)


Advanced = tuple[Guard, Tenure, tuple[Action, ...]]
