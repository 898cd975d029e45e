"""An operator's commands to the running daemon, as events for the core, and the replies.

Roles show why a command is impossible, and the core decides whether a command takes effect. A command that
takes time is answered when it is complete: ``on_step`` checks after every step.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence

from supervisor.adapters.consul.candidates import NoTarget, target_of
from supervisor.config.formats.json_values import holder_node
from supervisor.config.problems import known_names
from supervisor.core.actions import Action, Role
from supervisor.core.contender.state import Contender
from supervisor.core.events import (
    ConfirmOffAsked,
    Event,
    PauseAsked,
    RecoverAsked,
    ResumeAsked,
    StepDownAsked,
)
from supervisor.core.lock.handover import HANDOVER_S
from supervisor.core.machines.record import paused_until
from supervisor.core.outcomes import ListedSession, SessionsView
from supervisor.core.reload import ReloadEffect
from supervisor.core.settings import ItemSettings
from supervisor.core.times import NEVER
from supervisor.daemon.reload import CannotReload, Reloaded
from supervisor.daemon.shared import Shared
from supervisor.reporting.control import OperatorCommand, Reply, Result, Verb
from supervisor.reporting.telemetry.formatting import remedy, when

NAME_CHARS_MAX = 200  # of a holder whose value is no JSON with a Node
TAKEN_OVER_S = 10.0  # waiters try within milliseconds of a release; after that long there is none
RELEASED_S = 600.0  # for an on_lose with all its retries, and for Consul to come back
NEXT_TENURE = ", but in force only with its next tenure, because its watchdog changes"
IN_FORCE_S = 5.0  # with 3 s for the disk within TimeoutStartSec=, which ends `systemctl reload`


class Operator:
    """The commands about the contenders of one node."""

    def __init__(
        self,
        shared: Shared,
        reload: Callable[[], Awaitable[Reloaded]],
        on_disk: Callable[[], Awaitable[str]],
    ) -> None:
        self._shared, self._contenders = shared, shared.contenders
        self._reload = reload  # reads the configuration again and returns the changes. Raises CannotReload
        self._on_disk = on_disk  # returns blank once the records are on disk, or why they are not
        self._waiting: dict[asyncio.Future[None], Callable[[], bool]] = {}

    async def execute(self, command: OperatorCommand) -> Reply:
        """Carry out a command and return its reply: of several, the first refusal if there is one."""
        if command.verb is Verb.RELOAD:
            return await self._reloaded()
        known = {**self._contenders.by_name, **self._contenders.not_begun}
        if command.name is not None and command.name not in known:
            why = f"no such election or semaphore, there are {known_names(command.name, sorted(known))}"
            return _cannot(command.verb, command.name, why, Result.UNKNOWN)
        if command.verb is Verb.STEP_DOWN:
            return await self._step_down(command) if command.name else await self._all_step_down(command)
        contending = [name for name, contender in known.items() if not _obstacle(Verb.PAUSE, contender)]
        names = contending if command.name is None else [command.name]
        replies = [self._one(command, name) for name in names]
        if refused := next((reply for reply in replies if reply.outcome is not Result.DONE), None):
            return refused
        if why := await self._on_disk():
            why = _forgotten(f" once this machine has booted: {why}")
            return _cannot(command.verb, command.name or "all", why)
        return Reply(Result.DONE, "", tuple(line for reply in replies for line in reply.lines))

    def on_step(self, event: Event, actions: Sequence[Action]) -> None:
        """Wake each command that this step has completed, even if the next step undoes that."""
        for future, condition in tuple(self._waiting.items()):
            if not future.done() and condition():
                future.set_result(None)

    def _one(self, command: OperatorCommand, name: str) -> Reply:
        verb, before = command.verb, self._contenders.by_name.get(name)
        if before is None or (before.role is Role.STOPPED and name in self._contenders.not_begun):
            others = ", ".join(sorted(self._contenders.begins_after(name)))
            return _cannot(verb, name, f"it waits until {others} has ended, which has the same name or key")
        if why := _obstacle(verb, before):
            return _cannot(verb, name, why)
        until = NEVER if command.pause_s is None else self._shared.wall() + command.pause_s
        if command.name is None:
            until = max(until, before.paused_until)  # a command for all does not shorten another's pause
        events: dict[Verb, Event] = {
            Verb.RECOVER: RecoverAsked(name),
            Verb.CONFIRM_OFF: ConfirmOffAsked(name),
            Verb.PAUSE: PauseAsked(name, until),
            Verb.RESUME: ResumeAsked(name, by_name=command.name is not None),
        }
        self._shared.dispatch(events[verb])
        done = _what_came_of(verb, before, until, by_name=command.name is not None)
        after = self._contenders.by_name.get(name)
        kept = None if after is None else after.record_keeper.kept
        if after is not None and (kept is None or paused_until(kept) != after.paused_until):
            return _cannot(verb, name, _forgotten(", because it cannot be recorded (see the log)"))
        return Reply(Result.DONE, "", (f"{name}: {done}",))

    # --- commands that take time -----------------------------------------------------------------

    async def _until(self, condition: Callable[[], bool], within_s: float) -> bool:
        if condition():
            return True
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting[future] = condition
        try:
            await asyncio.wait_for(future, within_s)
        except TimeoutError:
            return False
        finally:
            del self._waiting[future]
        return True

    async def _step_down(self, command: OperatorCommand) -> Reply:
        """Give the lock up. Return the reply when another node holds it, or when none took it in time."""
        name = command.name
        assert name is not None, "step-down has the name of an item"
        before, target = self._contenders.by_name.get(name), None
        try:
            if command.to and before is not None and before.tenure is not None:
                target = await self._target(before.settings, before.tenure.session, command.to)
        except NoTarget as error:
            return _cannot(Verb.STEP_DOWN, name, str(error))
        before = self._contenders.by_name.get(name)
        tenure = None if before is None else before.tenure
        if before is None or tenure is None or not tenure.believes:
            role = Role.WAITING if before is None else before.role
            outcome = Result.ELSEWHERE if tenure is None else Result.IMPOSSIBLE
            return _cannot(Verb.STEP_DOWN, name, f"this node does not hold it (role: {role})", outcome)
        holding = self._holders(name)
        handover_to = None if target is None else target.id
        asked = StepDownAsked(name, command.rest_s, handover_to=handover_to, note=command.note)
        self._shared.dispatch(asked)
        if not await self._until(lambda: self._has_given_up(name, tenure.session), RELEASED_S):
            return _cannot(Verb.STEP_DOWN, name, "on_lose or the release is still under way, see `status`")
        if self._is_stuck(name):
            return _cannot(Verb.STEP_DOWN, name, f"on_lose failed, so it is stuck: {remedy(name)}")
        released_at = asyncio.get_running_loop().time()
        within_s = TAKEN_OVER_S if target is None else TAKEN_OVER_S + HANDOVER_S
        if await self._until(lambda: bool(self._others(name) - holding), within_s):
            after_s = asyncio.get_running_loop().time() - released_at
            return self._taken_over(name, target, self._others(name) - holding, after_s)
        why = f"released, but nobody took over within {within_s:g} s"
        return Reply(Result.IMPOSSIBLE, f"{name}: {why}; {self._what_now(name, command.rest_s)}")

    async def _all_step_down(self, command: OperatorCommand) -> Reply:
        """Give up everything that this node holds at once, and return the reply when the last is done."""
        known = self._contenders.by_name.items()
        held = [name for name, each in known if each.tenure is not None and each.tenure.believes]
        replies = await asyncio.gather(*(self._step_down(command._replace(name=name)) for name in held))
        lines = tuple(line for reply in replies for line in reply.lines)
        refused = [reply for reply in replies if reply.outcome is not Result.DONE]
        if refused:
            further = tuple(reply.error for reply in refused[1:])
            return Reply(refused[0].outcome, refused[0].error, (*lines, *further))
        return Reply(Result.DONE, "", lines or ("this node holds nothing",))

    async def _target(self, settings: ItemSettings, ours: str, to: str) -> ListedSession:
        """Return the session of the candidate that ``to`` names. ``ours``: that holds. Raises NoTarget."""
        if settings.kind != "election":
            raise NoTarget("--to is for elections: a slot goes to the contender that is first in line")
        seen = await self._shared.client.sessions()
        if not isinstance(seen, SessionsView):
            raise NoTarget(f"Consul does not list its sessions: {getattr(seen, 'why', seen)}")
        return target_of(to, settings, seen, ours=ours, hostname=self._shared.node)

    def _taken_over(
        self, name: str, target: ListedSession | None, holders: frozenset[str], after_s: float
    ) -> Reply:
        """Return the reply when another node has taken over: the target, if there is one, or not."""
        holder = self._names(name, holders)
        if target is None or target.id in holders:
            line = f"{name}: {holder} holds it, {after_s:.1f} s after this node released it"
            return Reply(Result.DONE, "", (line,))
        why = f"released, but {target.node} ({target.id}) did not take over: {holder} holds it now"
        return Reply(Result.IMPOSSIBLE, f"{name}: {why}")

    def _what_now(self, name: str, rest_s: float) -> str:
        """Return the plan of this node when no node takes over, and the command to contend at once."""
        contender = self._contenders.by_name.get(name)
        if contender is not None and contender.paused:
            return f"this node is paused, `consul-supervisor resume {name}` has it contend at once"
        if contender is not None and contender.role is Role.RESTING:
            rests = f"this node rests for {rest_s:g} s after the release"
            return f"{rests}, `consul-supervisor resume {name}` ends the rest"
        return "this node contends again"

    def _has_given_up(self, name: str, session: str) -> bool:
        """Return whether the item is released, or cannot be because it is stuck."""
        contender = self._contenders.by_name.get(name)
        if contender is None or self._is_stuck(name):
            return True
        return contender.tenure is None and session not in self._holders(name)

    def _is_stuck(self, name: str) -> bool:
        contender = self._contenders.by_name.get(name)
        return contender is not None and contender.role is Role.STUCK

    def _holders(self, name: str) -> frozenset[str]:
        contender = self._contenders.by_name.get(name)
        view = None if contender is None else contender.lock.view
        return frozenset() if view is None else frozenset(holder.session for holder in view.holders)

    def _names(self, name: str, sessions: frozenset[str]) -> str:
        """Return the names of these holders: the node in the value, the value itself, or the session."""
        view = self._contenders.by_name[name].lock.view
        holders = () if view is None else view.holders
        named = (
            (holder_node(each.value) or each.value.decode(errors="replace"))[:NAME_CHARS_MAX] or each.session
            for each in holders
            if each.session in sessions
        )
        return ", ".join(named)

    def _others(self, name: str) -> frozenset[str]:
        """Return the holders other than the session by which this node contends again."""
        contender = self._contenders.by_name.get(name)
        return self._holders(name) - ({contender.session.id} if contender is not None else set())

    async def _reloaded(self) -> Reply:
        try:
            reloaded = await self._reload()
        except CannotReload as error:
            outcome = Result.FAULTY if error.faulty else Result.IMPOSSIBLE
            return Reply(outcome, str(error), error.lines)
        changed = {
            name: effect
            for name, effect in sorted(reloaded.effects.items())
            if effect is not ReloadEffect.UNCHANGED
        }
        await self._until(lambda: not any(self._is_under_way(*each) for each in changed.items()), IN_FORCE_S)
        items = (f"{name}: {effect}{self._pending(name, effect)}" for name, effect in changed.items())
        lines = [*reloaded.process, *items] or ["nothing has changed"]
        if why := await self._on_disk():
            lines.append(f"this is in force, but a start after a boot cannot fall back to it: {why}")
        return Reply(Result.DONE, "", tuple(lines))

    def _is_under_way(self, name: str, effect: ReloadEffect) -> bool:
        """Return whether a part of a reload is still to come that needs no operator."""
        return not self._is_stuck(name) and self._pending(name, effect) not in ("", NEXT_TENURE)

    def _pending(self, name: str, effect: ReloadEffect) -> str:
        """Return the work that a reload leaves to do, to be added to its line. Blank: nothing."""
        contender = self._contenders.by_name.get(name)
        if effect is ReloadEffect.ENDS:
            return "" if contender is None else f", but not ended yet (role: {contender.role})"
        if contender is None or contender.departing:
            others = ", ".join(sorted(self._contenders.begins_after(name)))
            if not others:
                return ", but the file has changed since"
            return f", but it waits until {others} has ended"
        if contender.next_settings is None:
            return ""
        if contender.next_settings.watchdog != contender.settings.watchdog:
            return NEXT_TENURE
        return f", but in force only when Consul has confirmed it (role: {contender.role})"


def _obstacle(verb: Verb, contender: Contender) -> str:
    if verb is Verb.RECOVER:
        return "" if contender.role is Role.STUCK else f"it is not stuck (role: {contender.role})"
    if verb is Verb.CONFIRM_OFF:
        guards = contender.guard is not None and contender.guard.end is None
        return "" if guards else f"it waits for no machine to be off (role: {contender.role})"
    if contender.role is Role.STOPPED:
        return "it has ended, and the file has it no more"
    return "" if contender.settings.contend else "it only observes (contend: false)"


def _what_came_of(verb: Verb, before: Contender, until: float, *, by_name: bool) -> str:
    rests = before.role is Role.RESTING
    if verb is Verb.RECOVER:
        return "recovered; its lock is being released" + ("; it stays paused" if before.paused else "")
    if verb is Verb.CONFIRM_OFF:
        return "the machine of the former holder is off by your word; this node goes on"
    if verb is Verb.PAUSE:
        holds = before.tenure is not None and before.tenure.believes
        ends = "resume" if until == NEVER else when(until)
        return f"paused until {ends}" + ("; it holds until step-down or a loss" if holds else "")
    if rests:
        return "its rest after step-down has ended"
    if before.settings.manual and by_name:
        return "it tries until the end of its next tenure, a pause, or a restart of this daemon"
    still = "; it stays paused everywhere until `resume --everywhere`" if before.withheld else ""
    return ("its pause has ended" if before.paused else "it was neither paused nor resting") + still


def _forgotten(why: str) -> str:
    return f"it is done, but a restart forgets it{why}"


def _cannot(verb: Verb, name: str, why: str, outcome: Result = Result.IMPOSSIBLE) -> Reply:
    return Reply(outcome, f"cannot {verb} {name}: {why}")
