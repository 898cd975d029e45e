"""Promises of a semaphore that must hold in every state, beside those of elections and semaphores.

The judges use the machines' processes and the witness of Consul's store.
"""

from collections.abc import Sequence

from supervisor.core.actions import Action
from supervisor.core.requests import JoinSemaphore, TakeSlot
from supervisor.core.settings import SemaphoreSettings
from tests.models.simulation.children import Child
from tests.models.simulation.holders import OfSlots, Taking
from tests.models.simulation.judges import Judge
from tests.models.simulation.machine import Machine
from tests.models.simulation.scenario import CLOCK_RATE_ERROR
from tests.models.simulation.trace import short


class LimitKept(Judge):
    """Never more nodes act as holders than there were slots when the last of them took one.

    The number of slots is the smaller of Consul's record and the taker's own file. No node takes a slot
    beyond that number. The stated limits apply.
    """

    def __init__(self, machines: Sequence[Machine], slots: OfSlots) -> None:
        self._machines = machines
        self._slots = slots
        self._of_file: dict[str, int] = {}  # by session
        self._seen = 0

    def did(self, machine: Machine, action: Action) -> None:
        if isinstance(action, JoinSemaphore | TakeSlot) and action.slot_record is not None:
            settings = machine.in_force
            assert isinstance(settings, SemaphoreSettings)
            known = self._of_file.get(action.session, 0)
            self._of_file[action.session] = max(known, settings.limit)

    def look(self, machine: Machine) -> None:
        """Check by the machines' processes and the record."""
        for taking in self._slots.takings[self._seen :]:
            limit = self._limit(taking)
            self.require(
                taking.named <= limit, f"{short(taking.session)} takes slot {taking.named} of {limit}"
            )
        self._seen = len(self._slots.takings)
        self._count()

    def spawned(self, machine: Machine, child: Child) -> None:
        """Check at the begin of a child, because an overlap may end before the step does."""
        self._count()

    def _count(self) -> None:
        acting = [machine for machine in self._machines if machine.acts]
        guarded = [each for each in acting if each.application.session not in self._slots.unguarded]
        sessions = {machine.application.session for machine in guarded}
        limits = [self._limit(taking) for taking in self._slots.takings if taking.session in sessions]
        limit = limits[-1] if limits else 0
        names = ", ".join(f"{each.name} (session {short(each.application.session)})" for each in guarded)
        self.require(len(guarded) <= limit, f"{names} act as holders at once, the limit is {limit}")

    def _limit(self, taking: Taking) -> int:
        return min(taking.limit, self._of_file[taking.session])


class PrunesLate(Judge):
    """The slot of a vanished session is not taken before its prune delay is over.

    A record that was deleted is not made again sooner either, while it has contenders.
    """

    def __init__(self, slots: OfSlots) -> None:
        self._slots = slots
        self._seen = 0

    def look(self, machine: Machine) -> None:
        """Check by Consul's store, and by the slowest clock."""
        for pruning in self._slots.prunings[self._seen :]:
            due_s = pruning.lockout_s / (1 + CLOCK_RATE_ERROR)
            words = f"the slot of {short(pruning.session)} is taken after {pruning.after_s:.2f} s"
            self.require(pruning.after_s >= due_s, f"{words}, not {due_s:.2f} s")
        self._seen = len(self._slots.prunings)


class TokensOfSlots(Judge):
    """A token is an index that the record had while it named the session.

    So it grows from one holder of a slot to the next, and it never changes within a tenure.
    """

    def __init__(self, slots: OfSlots) -> None:
        self._slots = slots
        self._of: dict[str, int] = {}

    def spawned(self, machine: Machine, child: Child) -> None:
        context = child.started.context
        if not child.acts:
            return
        session, token = context.session, context.fencing_token
        least = next((each.index for each in self._slots.takings if each.session == session), None)
        self.require(least is not None, f"{machine.name}: a token for {short(session)}, which has no slot")
        assert least is not None
        most = self._slots.last_index[session]
        told = f"{machine.name}: token {token}"
        self.require(least <= token <= most, f"{told} is none from {least} to {most}")
        known = self._of.setdefault(session, token)
        self.require(token == known, f"{told} was {known} before")
