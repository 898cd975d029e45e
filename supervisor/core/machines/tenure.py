"""One tenure: from Consul's answer that our session holds the lock to the end of on_lose.

``TRANSITIONS`` draws its phases. GUARDING waits behind the tenure record of another (``claim.guard``).
ACQUIRING runs on_acquire and then starts the run child, which is the command of ``run``. STOPPING kills those
of them that still run, or a fence. LOSING runs on_lose, and LAST_RESORT runs on_lose_failure; ``phases.py``
decides when each of them begins. A tenure that is ADOPTING comes from the
record of a process that crashed: the record names this node as holder, and Consul has not confirmed that to
this process yet.

A tenure never runs two hooks at once. It runs on_lose once if ``began`` is true, else never. on_acquire and
the run child begin only on a fresh contact, and only once the tenure is on record; on_lose waits for neither.
A hook begins when its process starts, so a hook that could not be started has not begun. A tenure knows
nothing of keys, prefixes or the lives of sessions, so elections and semaphores share this module.
``core.contender.lifecycle`` decides when a tenure begins.
"""

from collections.abc import Mapping
from enum import StrEnum
from typing import Any

from supervisor.core.actions import Holder, Previous, Reason, StartRun
from supervisor.core.events import HookEnded, RunEnded
from supervisor.core.frozen import dataclass, replace
from supervisor.core.lease import Lease
from supervisor.core.machines.machine import next_state
from supervisor.core.machines.sequence import Sequence
from supervisor.core.times import LONG_AGO, NEVER

REASON_WITHIN_S = 0.25  # on_lose waits no longer than this to learn why the lock was lost
OUR_OWN_MAKING = (Reason.ACQUIRE_FAILED, Reason.RUN_EXITED, Reason.UNHEALTHY)
ORDERED = (Reason.SHUTDOWN, Reason.CONFIG_CHANGED, Reason.STEP_DOWN)
PLANNED = (*ORDERED, Reason.MAINTENANCE)  # because somebody asked for it, also at Consul


class Phase(StrEnum):
    """The progress of a tenure."""

    ADOPTING = "adopting"
    GUARDING = "guarding"
    ACQUIRING = "acquiring"
    HOLDING = "holding"
    STOPPING = "stopping"
    LOSING = "losing"
    LAST_RESORT = "last-resort"
    LOST = "lost"
    STUCK = "stuck"


class PhaseEnd(StrEnum):
    """The cause that ends a phase."""

    GUARD_OVER = "the guard is over, and the tenure record names this session"
    ON_ACQUIRE_DUE = "on_acquire is due"
    ON_ACQUIRE_OVER = "on_acquire is over"
    BELIEF_OVER = "belief is over"
    ALL_STOPPED = "nothing runs any more"
    NOTHING_BEGAN = "nothing had begun"
    HOOKS_DONE = "the hooks are done"
    HOOK_FAILED = "a hook has failed"
    NO_LAST_RESORT = "a hook has failed, and there is no on_lose_failure"
    OUTLIVED = "KILL has not ended a process of an ordered loss"
    RECOVERED = "an operator has run `recover`"


BELIEVING = (Phase.ADOPTING, Phase.GUARDING, Phase.ACQUIRING, Phase.HOLDING)
TRANSITIONS: Mapping[Phase, Mapping[PhaseEnd, Phase]] = {
    Phase.ADOPTING: {  # Consul has confirmed the tenure, or belief is over before that
        PhaseEnd.ON_ACQUIRE_DUE: Phase.ACQUIRING,
        PhaseEnd.ON_ACQUIRE_OVER: Phase.HOLDING,
        PhaseEnd.BELIEF_OVER: Phase.STOPPING,
    },
    Phase.GUARDING: {
        PhaseEnd.GUARD_OVER: Phase.ACQUIRING,
        PhaseEnd.BELIEF_OVER: Phase.STOPPING,
    },
    Phase.ACQUIRING: {
        PhaseEnd.ON_ACQUIRE_OVER: Phase.HOLDING,
        PhaseEnd.BELIEF_OVER: Phase.STOPPING,
    },
    Phase.HOLDING: {PhaseEnd.BELIEF_OVER: Phase.STOPPING},
    Phase.STOPPING: {
        PhaseEnd.ALL_STOPPED: Phase.LOSING,
        PhaseEnd.NOTHING_BEGAN: Phase.LOST,
    },
    Phase.LOSING: {
        PhaseEnd.HOOKS_DONE: Phase.LOST,
        PhaseEnd.HOOK_FAILED: Phase.LAST_RESORT,
        PhaseEnd.NO_LAST_RESORT: Phase.STUCK,
    },
    Phase.LAST_RESORT: {
        PhaseEnd.HOOKS_DONE: Phase.LOST,
        PhaseEnd.HOOK_FAILED: Phase.STUCK,
    },
    Phase.STUCK: {PhaseEnd.RECOVERED: Phase.LOST},
    Phase.LOST: {PhaseEnd.OUTLIVED: Phase.STUCK},
}


@dataclass(frozen=True, slots=True)
class Tenure:
    """One tenure, and the hook or child that runs for it."""

    session: str
    token: int  # the fencing token, which is the ModifyIndex that the key got when this node won it
    create_index: int
    lock_index: int
    # When the newest request was sent whose consistent answer showed us as holder: a read, a watch, a write.
    contact: float
    leader: bytes  # the value of this holder
    previous_leader: bytes | None  # the value of the holder before
    phase: Phase = Phase.ACQUIRING
    # on_lose must run, because on_acquire or the run child has begun or is being started, or because the
    # tenure is HOLDING and has neither of them. A tenure from a record always has it.
    began: bool = False
    began_before: bool = False  # what ``began`` was before the start that is under way
    hooks: Sequence = Sequence()
    run: StartRun | None = None
    killing: bool = False
    reason: Reason = Reason.ACQUIRED
    # Until when on_lose waits: for a better reason than the one at hand or, when the loss is ordered, for the
    # end of ``survivors``. LONG_AGO: no waiting.
    reason_deadline: float = LONG_AGO
    taken_at: float | None = None  # since when nothing keeps a rival out any more. None: Consul does still
    next_leader: bytes | None = None  # the value of the holder after
    held_at: float | None = None  # when this node began to hold
    recorded: bool = False  # on record, so that a crash does not forget it; no hook begins before
    fresh_since: float = LONG_AGO  # on_acquire and the run child do not begin on a contact older than this
    renewed: bool = False  # Consul has renewed the session since this process began or adopted the tenure
    acquire_done: bool = False  # on_acquire was already done when the process before this one crashed
    holders: tuple[Holder, ...] = ()  # the holders of a semaphore, as this node last observed them
    # Why an operator stepped this node down or began its maintenance mode, which the hooks receive. Blank: no
    # reason was given.
    note: str = ""
    # A watchdog may run because of it. A tenure of an earlier process of this boot has that from the start.
    armed: bool = False
    # Its ``Arm`` has an answer in this process, so on_acquire and the run child may begin, also without a
    # device that is not required.
    arm_answered: bool = False
    overwritten: bool = False  # another program has written over the value of this holder
    repair_at: float = LONG_AGO  # when such a value is written again at the earliest
    guarded: bool = False  # it began in GUARDING
    slot: int | None = None  # the number of the slot. None: it has none, or there are no slots
    previous: Previous | None = None  # the tenure before, which the hooks of an election with a fence receive
    survivors: str = ""  # the processes of it that KILL has not ended. Blank: there are none
    # How long others wait by its tenure record, as far as belief may count by it once that is in the
    # journal. 0: no longer than the lock-delay.
    leased_s: float = 0.0
    stopped_at: float = NEVER  # when belief ended. NEVER: it lasts

    @property
    def believes(self) -> bool:
        return self.phase in BELIEVING

    def expires_at(self, lease: Lease) -> float:
        """Return when belief ends if no further contact comes."""
        return self.contact + lease.belief_s if self.believes else NEVER

    def _leased_from(self, lease: Lease) -> float:
        """Return the contact from which a lease by the lock-delay ends as this one does.

        Once a belief that outlasts the lock-delay is over, a loss has no more time than any other one.
        """
        ends_at = min(self.stopped_at, self.contact + lease.belief_s)
        return max(self.contact, ends_at - lease.room_s)

    def rival_at(self, lease: Lease) -> float:
        """Return from when on a rival may hold the lock."""
        return self._leased_from(lease) + lease.lockout_s if self.taken_at is None else self.taken_at

    def reset_by(self, lease: Lease) -> float:
        """Return when a watchdog must have reset this machine, unless the tenure ends or is confirmed before.

        That is half a margin after the latest end of a loss, and half a margin before a rival may hold. A
        loss that Consul does not guard has only the time that losing takes.
        """
        by = self._leased_from(lease) + lease.lockout_s - lease.margin_s / 2
        return by if self.taken_at is None else min(by, self.taken_at + lease.lose_time_s)

    @property
    def is_idle(self) -> bool:
        """Whether nothing of it acts: nothing but a fence has begun, or all has ended."""
        guards = self.phase in (Phase.GUARDING, Phase.STOPPING) and self.guarded and not self.began
        return guards or (self.phase is Phase.LOST and not self.survivors)

    def deadline(self, lease: Lease) -> float:
        if self.phase is Phase.STOPPING and self.run is None and self.hooks.running is None:
            return min(self.reason_deadline, self.contact + lease.room_s)
        return min(self.expires_at(lease), self.hooks.deadline)

    def guard_ended(self, contact: float, previous: Previous | None) -> "Tenure":
        """Go on to on_acquire, because Consul has shown our session and our tenure record behind it."""
        tenure = become(self.confirmed(contact), PhaseEnd.GUARD_OVER, hooks=Sequence())
        return replace(tenure, previous=previous or self.previous)

    def confirmed(self, at: float) -> "Tenure":
        """Note a contact: a consistent answer to a request sent at ``at`` showed us as holder."""
        return replace(self, contact=max(self.contact, at))

    def lose(self, reason: Reason, now: float, *, within_s: float = 0.0) -> "Tenure":
        """End belief, for this reason or for a better one that comes within ``within_s``.

        A loss that was asked for waits that long for the end of ``survivors``, never for a better reason.
        A tenure that is ADOPTING ends with the reason CRASHED, unless the reason is one of ``ORDERED``.
        """
        if not self.believes:
            return self
        lost = become(self, PhaseEnd.BELIEF_OVER, reason=reason, stopped_at=now)
        if self.phase is Phase.ADOPTING and reason not in ORDERED:
            return replace(lost, reason=Reason.CRASHED)
        waits = within_s and (self.survivors or reason not in PLANNED)
        return replace(lost, reason_deadline=now + within_s if waits else LONG_AGO)

    def wait_for_new_contact(self, now: float) -> "Tenure":
        """Begin nothing more before a new contact, because this process has stood still."""
        return replace(self, fresh_since=now)

    def with_reason(self, reason: Reason) -> "Tenure":
        """Replace the reason of a loss by a better one, if on_lose was made to wait for one."""
        if self.phase is Phase.STOPPING and self.reason_deadline > LONG_AGO:
            return replace(self, reason=reason, reason_deadline=LONG_AGO)
        return self

    def awaits_reason(self, now: float) -> bool:
        """Return whether on_lose still waits for a renewal to show why the lock was lost."""
        return self.phase is Phase.STOPPING and now < self.reason_deadline and self.reason not in PLANNED

    def session_still_lives(self) -> "Tenure":
        """Let on_lose wait no longer: where the session lives, an operator has released the key."""
        why = Reason.RELEASED_BY_OPERATOR if self.reason is Reason.LOCK_GONE else self.reason
        return self if self.reason in PLANNED else self.with_reason(why)

    def key_lost(self, now: float, next_leader: bytes | None) -> "Tenure":
        """Note that the key is no longer ours, so a rival may hold the key from now on."""
        taken_at = now if self.taken_at is None else self.taken_at
        wait_until = LONG_AGO if self.reason in PLANNED else self.reason_deadline
        return replace(self, taken_at=taken_at, next_leader=next_leader, reason_deadline=wait_until)

    def lock_delayed(self) -> "Tenure":
        """Note that the session ended without a release, so the lock-delay guards the lock."""
        return replace(self, taken_at=None)


def become(tenure: Tenure, cause: PhaseEnd, **changes: Any) -> Tenure:
    """Return the tenure in the phase that follows for this cause, with these changes of other fields.

    No other line of the core sets the phase of a tenure that has begun.
    """
    return replace(tenure, phase=next_state(TRANSITIONS, tenure.phase, cause), **changes)


def recover(tenure: Tenure) -> Tenure:
    """End a stuck tenure, of which nothing acts by the operator's word; leave any other tenure as it is."""
    return become(tenure, PhaseEnd.RECOVERED, survivors="") if tenure.phase is Phase.STUCK else tenure


def outlived(tenure: Tenure, survivors: str, wait_until: float) -> Tenure:
    """Note the processes that KILL has not ended. An on_lose that was ordered waits for their end."""
    is_first = not (survivors and tenure.survivors)
    if is_first and tenure.phase is Phase.STOPPING and tenure.reason in PLANNED:
        tenure = replace(tenure, reason_deadline=wait_until)
    return replace(tenure, survivors=survivors)


def hook_ended(tenure: Tenure, event: HookEnded) -> Tenure:
    """Note the end of an attempt. An on_acquire that never started owes no on_lose."""
    if event.started != tenure.hooks.running:
        return tenure
    tenure = replace(tenure, hooks=tenure.hooks.ended(event.ok), killing=False)
    is_acquire = event.started.context.event == "acquire"
    return tenure if event.began or not is_acquire else replace(tenure, began=tenure.began_before)


def run_ended(tenure: Tenure, event: RunEnded, now: float) -> Tenure:
    """Note the end of the run child, which is a loss unless this node has stopped the child."""
    if event.started != tenure.run:
        return tenure
    began = tenure.began if event.began else tenure.began_before
    return replace(tenure, run=None, killing=False, began=began).lose(Reason.RUN_EXITED, now)
