"""Promises that must hold in every state: one judge for each promise.

A judge uses events and actions, the machine's processes and Consul's own state. The belief of a supervisor
counts only where belief itself is judged. Each judge gets every event and looks after every step; the first
broken promise ends the run.
"""

from collections import deque
from collections.abc import Callable, Sequence
from functools import partial

from supervisor.core.actions import Action, HookContext, Point, StartHook
from supervisor.core.events import Answered, Event, HookEnded, OrderSeen, RecordWritten
from supervisor.core.machines.tenure import Phase
from supervisor.core.outcomes import Done, KeyView, SlotsView, SlotWritten, Won
from supervisor.core.requests import (
    Acquire,
    DestroySession,
    JoinSemaphore,
    LeaveSemaphore,
    Release,
    Request,
    Rewrite,
    TakeSlot,
    Watch,
)
from tests.models.simulation.children import Child, Started
from tests.models.simulation.holders import Witness
from tests.models.simulation.machine import Machine
from tests.models.simulation.trace import short

REQUESTS_A_SECOND_MAX = 50  # in thousands of worlds the number stays below 20
Try = Acquire | JoinSemaphore | TakeSlot
Return = Release | LeaveSemaphore | DestroySession


class Broken(Exception):
    """A promise was broken.

    judge: the name of the judge that reports it.
    """

    def __init__(self, judge: str, words: str) -> None:
        super().__init__(f"{judge}: {words}")
        self.judge = judge


class Judge:
    """Receives every event; each promise needs some of them."""

    def saw(self, machine: Machine, event: Event) -> None:
        """Receive an event just before the supervisor does."""

    def did(self, machine: Machine, action: Action) -> None:
        """Receive an action that the supervisor has just carried out."""

    def look(self, machine: Machine) -> None:
        """Check the state after a step of the supervisor."""

    def died(self, machine: Machine, why: str) -> None:
        """Receive the death of a supervisor that has not wound up."""

    def spawned(self, machine: Machine, child: Child) -> None:
        """Receive the begin of a child."""

    def require(self, holds: bool, words: str) -> None:
        """Raise Broken unless the condition holds."""
        if not holds:
            raise Broken(type(self).__name__, words)


class Judges(Judge):
    """All judges; each gets only the events that it needs."""

    def __init__(self, judges: Sequence[Judge]) -> None:
        for name in ("saw", "did", "look", "died", "spawned"):
            needing = (judge for judge in judges if getattr(type(judge), name) is not getattr(Judge, name))
            setattr(self, name, partial(_tell, [getattr(judge, name) for judge in needing]))


def _tell(needing: Sequence[Callable[..., None]], *what: object) -> None:
    for tell in needing:
        tell(*what)


class OneActs(Judge):
    """Never two nodes act as holder at once, within the stated limits.

    fenced: whether tenure records guard the holders. Then no limit applies that Consul's lock-delay has.
    """

    def __init__(self, machines: Sequence[Machine], witness: Witness, *, fenced: bool) -> None:
        self._machines = machines
        self._witness = witness
        self._fenced = fenced

    def look(self, machine: Machine) -> None:
        """Check by the machines' processes alone."""
        self._look()

    def spawned(self, machine: Machine, child: Child) -> None:
        """Check at the begin of a child, because an overlap may end before the step does."""
        self._look()

    def _look(self) -> None:
        unguarded = set[str]() if self._fenced else self._witness.unguarded
        acting = [each for each in self._machines if each.acts and each.application.session not in unguarded]
        names = " and ".join(f"{each.name} (session {short(each.application.session)})" for each in acting)
        self.require(len(acting) < 2, f"{names} act as holder at once")


class LoseForEveryAcquire(Judge):
    """on_lose runs once for every tenure that began, and for no other; again only after a crash.

    A full disk is a limit: where it refused to record how far on_lose had come, the next process cannot know.
    """

    def __init__(self) -> None:
        self.owed: dict[str, str] = {}  # by node: the session of a tenure that began
        self._began: dict[str, str] = {}  # by node: the session of a tenure whose on_lose has run
        self._crashed: dict[str, bool] = {}
        self._unwritten: dict[str, str] = {}  # the session whose end could not be recorded

    def died(self, machine: Machine, why: str) -> None:
        """Expect everything again that was not on record."""
        self._crashed[machine.name] = True

    def spawned(self, machine: Machine, child: Child) -> None:
        name, context = machine.name, child.started.context
        if not machine.in_force.on_lose:
            return
        if child.acts:
            self._acquires(name, context)
        elif context.event == "lose":
            self._loses(machine, child.started, context)

    def _acquires(self, name: str, context: HookContext) -> None:
        owed = self.owed.get(name, "")
        self.require(owed in ("", context.session), f"{name} acquires, and on_lose has not run for {owed}")
        lost = self._began.get(name) == context.session
        lost = lost and self._unwritten.get(name) != context.session
        self.require(not lost, f"{name}: on_acquire or run after on_lose")
        self.owed[name] = context.session
        self._crashed[name] = False

    def _loses(self, machine: Machine, started: Started, context: HookContext) -> None:
        name, session = machine.name, context.session
        assert isinstance(started, StartHook)
        first = started.attempt == 1 and started.hook == machine.in_force.on_lose[0]
        again = self._began.get(name) == session
        crashed = self._crashed.get(name, False) or self._unwritten.get(name) == session
        # A crash came between the record and the hook, so on_acquire may have begun.
        due = crashed or self.owed.get(name) == session or (again and started.attempt > 1)
        self.require(due, f"{name}: on_lose for a tenure that never began")
        self.require(not (first and again) or crashed, f"{name}: on_lose runs twice")
        if first:
            self.owed[name] = self._began[name] = session
            self._crashed[name] = False

    def saw(self, machine: Machine, event: Event) -> None:
        match event:
            case RecordWritten(ok=False) if machine.name in self._began:
                self._unwritten[machine.name] = self._began[machine.name]
            case HookEnded(StartHook(hook, context=context)) if context.event == "lose":
                if hook == machine.in_force.on_lose[-1]:
                    self.owed.pop(machine.name, None)


class OneHookAtATime(Judge):
    """No two of the hooks of a tenure, and no hook beside the run child: leftovers count."""

    def spawned(self, machine: Machine, child: Child) -> None:
        alive = [other for other in machine.children.alive if other.in_tenure]
        names = " and ".join(_name_of(other.started) for other in alive)
        self.require(not child.in_tenure or len(alive) == 1, f"{machine.name}: {names} run at once")


class WritesGoForward(Judge):
    """The writes of one session go forward only, over all processes: acquire, then release, then destroy.

    In a semaphore, standing in line and taking a slot count as acquire, and leaving counts as release.
    """

    _RANK: dict[type[Action], int] = {
        Acquire: 1,
        JoinSemaphore: 1,
        TakeSlot: 1,
        Release: 2,
        LeaveSemaphore: 2,
        DestroySession: 3,
    }

    def __init__(self) -> None:
        self._reached: dict[str, int] = {}

    def did(self, machine: Machine, action: Action) -> None:
        rank = self._RANK.get(type(action))
        if rank is None:
            return
        assert isinstance(action, Try | Return)
        reached = self._reached.get(action.session, 0)
        words = f"{machine.name}: {type(action).__name__} of {short(action.session)} comes too late"
        # A crash drops the progress of an end, and the end begins again; an acquire never does.
        self.require(rank >= min(reached, 2), words)
        self._reached[action.session] = max(rank, reached)


class NoReleaseWhileActing(Judge):
    """The lock is released only when on_lose has ended everything that this node does as holder."""

    def did(self, machine: Machine, action: Action) -> None:
        if isinstance(action, Return) and action.session == machine.application.session:
            up = machine.application.up or any(child.acts for child in machine.children.alive)
            self.require(not up, f"{machine.name} gives {short(action.session)} back while it acts")


class Gentle(Judge):
    """No supervisor sends requests to Consul without end, whatever the answers are."""

    def __init__(self) -> None:
        self._asked: dict[str, deque[float]] = {}
        self.most = 0

    def did(self, machine: Machine, action: Action) -> None:
        if not isinstance(action, Request):
            return
        now = machine.schedule.now
        asked = self._asked.setdefault(machine.name, deque())
        asked.append(now)
        while asked[0] <= now - 1.0:
            asked.popleft()
        self.most = max(self.most, len(asked))
        words = f"{machine.name} has asked {len(asked)} questions within a second"
        self.require(len(asked) <= REQUESTS_A_SECOND_MAX, words)


class TokensGrow(Judge):
    """The fencing token grows with every tenure and never changes within one."""

    def __init__(self) -> None:
        self._of: dict[str, int] = {}
        self._highest = 0

    def spawned(self, machine: Machine, child: Child) -> None:
        context = child.started.context
        if not child.acts:
            return
        known = self._of.get(context.session)
        token = context.fencing_token
        if known is None:
            words = f"{machine.name}: token {token} after {self._highest}"
            self.require(token > self._highest, words)
            self._of[context.session] = self._highest = token
        else:
            self.require(token == known, f"{machine.name}: token {token} was {known} before")


class BeliefHasRoom(Judge):
    """Belief never outlives contact + room, and no hook or child of a tenure begins on old answers.

    The judge computes contact by itself: the send time of the newest consistent answer that named our
    session.
    """

    def __init__(self) -> None:
        self._contact: dict[tuple[str, str | None], float] = {}  # by node and session, in the node's time

    def saw(self, machine: Machine, event: Event) -> None:
        match event:
            case Answered(Acquire() as request, Won()):
                self._met(machine, request.session, request.at)
            case Answered(Rewrite() as request, Done()):
                self._met(machine, request.session, request.at)
            case Answered((JoinSemaphore() | TakeSlot()) as request, SlotWritten(lock=lock)) if (
                lock is not None
            ):
                self._met(machine, request.session, request.at)
            case Answered(request, KeyView(session=session)):
                if machine.in_force.kind == "election" and _is_consistent(request):
                    self._met(machine, session, request.at)
            case Answered(request, SlotsView(holders=holders)) if _is_consistent(request):
                for holder in holders:
                    self._met(machine, holder.session, request.at)

    def _met(self, machine: Machine, session: str | None, at: float) -> None:
        known = self._contact.get((machine.name, session), at)
        self._contact[machine.name, session] = max(known, at)

    def look(self, machine: Machine) -> None:
        supervisor = machine.supervisor
        if supervisor is None:
            return
        tenure, lease = supervisor.contender.tenure, supervisor.contender.lease
        if tenure is not None and tenure.phase in (
            *(Phase.ADOPTING, Phase.GUARDING, Phase.ACQUIRING, Phase.HOLDING),
        ):
            ends_at = self._contact[machine.name, tenure.session] + lease.room_s
            self.require(supervisor.now() < ends_at, f"{machine.name} believes after contact + room")

    def spawned(self, machine: Machine, child: Child) -> None:
        context, supervisor = child.started.context, machine.supervisor
        if supervisor is None or not child.acts:
            return
        contact = self._contact.get((machine.name, context.session))
        began = f"{machine.name} begins {_name_of(child.started)}"
        self.require(contact is not None, f"{began} without Consul's word")
        assert contact is not None
        fresh_s = supervisor.contender.lease.fresh_s
        self.require(supervisor.now() - contact <= fresh_s, f"{began} on news older than {fresh_s:.2f} s")
        moved_at = machine.clock.local(machine.moved_at)
        self.require(contact >= moved_at, f"{began} on news from before it stood still")


class FollowsOrders(Judge):
    """No process tries while it knows of an order to pause."""

    def __init__(self) -> None:
        self._withheld: dict[str, object] = {}  # by machine, the process that knows of the order

    def saw(self, machine: Machine, event: Event) -> None:
        if isinstance(event, OrderSeen):
            self._withheld[machine.name] = machine.supervisor if event.withheld else None

    def did(self, machine: Machine, action: Action) -> None:
        withheld = isinstance(action, Try) and machine.supervisor is self._withheld.get(machine.name)
        self.require(not withheld, f"{machine.name} tries against an order")


class OnRecordFirst(Judge):
    """No try with a session, and no hook of a tenure, that a crash would forget: by the disk's bytes."""

    def did(self, machine: Machine, action: Action) -> None:
        if isinstance(action, Try):
            recorded = machine.disk.recorded()
            known = recorded is not None and recorded.state.session == action.session
            self.require(known, f"{machine.name} acquires with a session that is not on record")

    def spawned(self, machine: Machine, child: Child) -> None:
        context = child.started.context
        if not child.acts:
            return
        recorded = machine.disk.recorded()
        known = recorded is not None and recorded.state.session == context.session
        known = known and recorded is not None and recorded.state.step in (Point.TENURE, Point.HOLDING)
        self.require(known, f"{machine.name} begins a tenure that is not on record")


def _name_of(started: Started) -> str:
    return started.hook.name if isinstance(started, StartHook) else "run"


def _is_consistent(request: Request) -> bool:
    """Return whether the request is a consistent read; a watch may not be one."""
    return not isinstance(request, Watch) or request.consistent
