"""An operator's commands to the running daemon, as events for the core, and the replies.

Roles show why a command is impossible, and the core decides whether a command takes effect. A command that
takes time is answered when it is complete: ``on_step`` checks after every step.
"""

import asyncio
from collections.abc import Awaitable, Callable, Collection, Sequence
from itertools import starmap
from typing import Any, TypeVar

from supervisor.adapters.consul.candidates import NoTarget, target_of
from supervisor.adapters.consul.client import SESSIONS_S
from supervisor.config.formats.json_values import holder_name
from supervisor.config.problems import known_names
from supervisor.core.actions import Action, Holder, Role
from supervisor.core.claim.guard import Guard
from supervisor.core.contender.state import Contender
from supervisor.core.events import (
    ConfirmOffAsked,
    Event,
    PauseAsked,
    RecoverAsked,
    ResumeAsked,
    StepDownAsked,
)
from supervisor.core.lease import lease_of
from supervisor.core.lock.handover import HANDOVER_S
from supervisor.core.machines.tenure import Phase
from supervisor.core.outcomes import ListedSession, SessionsView
from supervisor.core.reload import ReloadEffect
from supervisor.core.settings import ItemSettings
from supervisor.core.times import LONG_AGO, NEVER
from supervisor.daemon.reload import CannotReload, Reloaded
from supervisor.daemon.shared import Shared
from supervisor.reporting.control import OperatorCommand, Reply, Result, Verb
from supervisor.reporting.control.protocol import RELEASED_S, TAKEN_OVER_S
from supervisor.reporting.telemetry.formatting import remedy, when
from supervisor.reporting.telemetry.item_warnings import (
    confirms_off,
    long_waited_for,
    pauses_of,
)

NEXT_TENURE = ", but in force only with its next tenure, because its watchdog changes"
IN_FORCE_S = 5.0  # with 3 s for the disk within TimeoutStartSec=, which ends `systemctl reload`
LEASED_S = 10.0  # whoever lengthens `outage` before work on Consul has to know whether it counts
OR_FORCE = "; wait for Consul, or give --force"

_Found = TypeVar("_Found")


class Operator:
    """The commands about the contenders of one node."""

    def __init__(
        self,
        shared: Shared,
        reload: Callable[[bool], Awaitable[Reloaded]],
        on_disk: Callable[[], Awaitable[str]],
    ) -> None:
        self._shared, self._contenders = shared, shared.contenders
        self._reload = reload  # by force or not: reads the configuration again. Raises CannotReload
        self._on_disk = on_disk  # returns blank once the records are on disk, or why they are not
        self._waiting: dict[asyncio.Future[Any], Callable[[], Any]] = {}

    async def execute(self, command: OperatorCommand) -> Reply:
        """Carry out a command and return its reply: of several, the first refusal if there is one."""
        if command.verb is Verb.RELOAD:
            return await self._reloaded(command)
        known = {**self._contenders.by_name, **self._contenders.not_begun}
        if command.name is not None and command.name not in known:
            why = f"no such election or semaphore, there are {known_names(command.name, sorted(known))}"
            return _cannot(command.verb, command.name, why, Result.UNKNOWN)
        stops = command.verb in (Verb.STEP_DOWN, Verb.DRAIN) and not command.force
        if stops and (why := self._shared.status.kept(known if command.name is None else [command.name])):
            return _cannot(command.verb, command.name or "all", f"{why}{OR_FORCE}")
        if command.verb is Verb.STEP_DOWN:
            return await self._step_down(command) if command.name else await self._all_step_down(command)
        if command.verb is Verb.CONFIRM_OFF and command.name is None:
            names = [name for name, each in known.items() if _guards(each, command.machine)]
            if not names:
                return _cannot(command.verb, "all", f"no item of this node waits for {command.machine}")
        elif command.name is None:
            names = [name for name, contender in known.items() if not _obstacle(Verb.PAUSE, contender)]
        else:
            names = [command.name]
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
            if not future.done() and (found := condition()):
                future.set_result(found)

    def _one(self, command: OperatorCommand, name: str) -> Reply:
        verb, before = command.verb, self._contenders.by_name.get(name)
        if before is None or (before.role is Role.STOPPED and name in self._contenders.not_begun):
            others = ", ".join(sorted(self._contenders.begins_after(name)))
            return _cannot(verb, name, f"it waits until {others} has ended, which has the same name or key")
        guard = before.guard if verb is Verb.CONFIRM_OFF else None
        if why := _obstacle(verb, before) or (guard and self._other_machine(name, guard, command.machine)):
            return _cannot(verb, name, why)
        now, given = self._shared.wall(), self._shared.history.events.before
        until = NEVER if command.pause_s is None else now + command.pause_s
        stays = before.stays_until if before.stays_until > now else LONG_AGO
        own = next(pauses_of(before, given, now)) if stays != LONG_AGO else ""
        if command.name is None and verb is Verb.PAUSE:
            until = max(until, stays)  # a command for all does not shorten another's pause
        events: dict[Verb, Event] = {
            Verb.RECOVER: RecoverAsked(name),
            Verb.CONFIRM_OFF: ConfirmOffAsked(name),
            Verb.PAUSE: PauseAsked(name, max(until, before.paused_until) if before.drained else until, until),
            Verb.RESUME: ResumeAsked(name, by_name=command.name is not None),
            Verb.DRAIN: PauseAsked(name, max(until, before.paused_until), stays),
            Verb.UNDRAIN: PauseAsked(name, stays, stays) if own else ResumeAsked(name, by_name=False),
        }
        self._shared.dispatch(events[verb])
        done = _what_came_of(verb, before, until, own, by_name=command.name is not None)
        if guard is not None and (machine := long_waited_for(guard)):
            done += f"; {machine} might have acted until {self._may_act_until(guard)}"
        after = self._contenders.by_name.get(name)
        if after is not None and after.record_keeper.kept != after.record:
            return _cannot(verb, name, _forgotten(", because it cannot be recorded (see the log)"))
        return Reply(Result.DONE, "", (f"{name}: {done}",))

    def _other_machine(self, name: str, guard: Guard, given: str) -> str:
        """Return why the word that this machine is off does not end the guard. Blank: it does."""
        if guard.machine == given or not (given or long_waited_for(guard)):
            return ""
        waits = f"it {guard.waits_for}" + (f" and not for {given}" if given else "")
        overlaps = f"which may act until {self._may_act_until(guard)}; if that machine is not off, two act"
        return f"{waits}, {overlaps}; if it is: {confirms_off(name, guard)}"

    def _may_act_until(self, guard: Guard) -> str:
        """Return until when the former holder may act. That a fence has to succeed does not change it."""
        return when(self._shared.wall() - self._shared.clock() + guard.waits_until(None))

    # --- commands that take time -----------------------------------------------------------------

    async def _until(self, condition: Callable[[], _Found], within_s: float) -> _Found | None:
        """Return what the condition has found once it is true. None: it was not within this time."""
        if found := condition():
            return found
        future: asyncio.Future[_Found] = asyncio.get_running_loop().create_future()
        self._waiting[future] = condition
        try:
            return await asyncio.wait_for(future, within_s)
        except TimeoutError:
            return None
        finally:
            del self._waiting[future]

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
        former = {holder.session for holder in self._holders(name)}
        handover_to = None if target is None else target.id
        asked = StepDownAsked(name, command.rest_s, handover_to=handover_to, note=command.note)
        self._shared.dispatch(asked)
        if not await self._until(lambda: self._has_given_up(name, tenure.session), RELEASED_S):
            return _cannot(Verb.STEP_DOWN, name, "on_lose or the release is still under way, see `status`")
        if self._is_stuck(name):
            left = self._contenders.by_name[name].tenure
            why = (left and left.survivors) or "on_lose failed"
            return _cannot(Verb.STEP_DOWN, name, f"{why}, so it is stuck: {remedy(name)}")
        released_at = asyncio.get_running_loop().time()
        within_s = TAKEN_OVER_S if target is None else TAKEN_OVER_S + HANDOVER_S
        if holders := await self._until(lambda: self._successors(name, former), within_s):
            after_s = asyncio.get_running_loop().time() - released_at
            return await self._taken_over(name, target, holders, after_s)
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
        node, client, fleet = self._shared.node, self._shared.client, self._shared.history.fleet.service
        seen = await client.sessions()
        if not isinstance(seen, SessionsView):
            raise NoTarget(f"Consul lists no sessions to the daemon: {getattr(seen, 'why', seen)}")
        present = await client.present(fleet, SESSIONS_S) if fleet else ()
        holds = (ours, node, holder_name(settings.value))
        return target_of(to, settings, seen, present, holds, node, "the daemon's token")

    async def _taken_over(
        self, name: str, target: ListedSession | None, holders: Sequence[Holder], after_s: float
    ) -> Reply:
        """Return the reply when another node has taken over: the target, if there is one, or not."""
        holder = await self._names(holders)
        if target is None or target.id in (each.session for each in holders):
            line = f"{name}: {holder} holds it, {after_s:.1f} s after this node released it"
            return Reply(Result.DONE, "", (line,))
        why = f"released, but {target.node} ({target.id}) did not take over: {holder} holds it now"
        return Reply(Result.IMPOSSIBLE, f"{name}: {why}")

    def _what_now(self, name: str, rest_s: float) -> str:
        """Return the plan of this node when no node takes over, and the command to contend at once."""
        contender = self._contenders.by_name.get(name)
        if contender is not None and contender.drained:
            return "this node is drained"
        if contender is not None and contender.withheld:
            return f"it is paused everywhere until `consul-supervisor resume {name} --everywhere`"
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
        return contender.tenure is None and all(each.session != session for each in self._holders(name))

    def _is_stuck(self, name: str) -> bool:
        contender = self._contenders.by_name.get(name)
        return contender is not None and contender.role is Role.STUCK

    def _holders(self, name: str) -> Sequence[Holder]:
        contender = self._contenders.by_name.get(name)
        return contender.lock.view.holders if contender and contender.lock.view else ()

    def _successors(self, name: str, former: Collection[str]) -> Sequence[Holder]:
        """Return the holders but these, and but the session by which this node contends again."""
        contender = self._contenders.by_name.get(name)
        known = {*former, contender.session.id if contender else None}
        return [each for each in self._holders(name) if each.session not in known]

    async def _names(self, holders: Sequence[Holder]) -> str:
        """Return the names of these holders: by the value, or else Consul's node, or else the session."""
        named = {each.session: holder_name(each.value) for each in holders}
        if not all(named.values()) and isinstance(seen := await self._shared.client.sessions(), SessionsView):
            named |= {each.id: each.node for each in seen.sessions if named.get(each.id) == ""}
        return ", ".join(called or session for session, called in named.items())

    async def _reloaded(self, command: OperatorCommand) -> Reply:
        try:
            reloaded = await self._reload(command.force)
        except CannotReload as error:
            outcome = Result.FAULTY if error.faulty else Result.IMPOSSIBLE
            return Reply(outcome, str(error), error.lines)
        changed = {
            name: effect
            for name, effect in sorted(reloaded.effects.items())
            if effect is not ReloadEffect.UNCHANGED
        }
        within_s = LEASED_S if self._not_leased() else IN_FORCE_S
        await self._until(
            lambda: not (self._not_leased() or any(starmap(self._is_under_way, changed.items()))), within_s
        )
        done = {name: f"{effect}{reloaded.keys.get(name, '')}" for name, effect in changed.items()}
        items = (f"{name}: {done[name]}{self._pending(name, effect)}" for name, effect in changed.items())
        lines = [*reloaded.process, *items] or ["nothing has changed"]
        if why := await self._on_disk():
            lines.append(f"this is in force, but a start after a boot cannot fall back to it: {why}")
        if late := self._not_leased():
            why = f"accepted, and in force for {late} with the next contact: Consul has not confirmed it"
            return Reply(Result.IMPOSSIBLE, f"{why} within {LEASED_S:g} s", tuple(lines))
        return Reply(Result.DONE, "", tuple(lines))

    def _not_leased(self) -> str:
        """Return the items whose belief does not count yet by the `outage` of the file. Blank: none."""
        return ", ".join(name for name, each in self._contenders.by_name.items() if not _is_leased(each))

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


def _is_leased(contender: Contender) -> bool:
    """Return whether belief counts by what the file asks for, in the journal as well."""
    tenure, lease, wanted = contender.tenure, contender.lease, contender.next_settings
    if tenure is None or not tenure.believes or tenure.phase is Phase.GUARDING:
        return True
    if wanted is not None and wanted.watchdog == contender.settings.watchdog:  # else: NEXT_TENURE
        lease = lease_of(wanted)
    return lease.leased_s == tenure.leased_s == contender.record_keeper.in_journal_s


def _guards(contender: Contender, machine: str) -> bool:
    """Return whether it waits for this machine to be off."""
    guard = contender.guard
    return guard is not None and guard.end is None and guard.machine == machine


def _obstacle(verb: Verb, contender: Contender) -> str:
    if verb is Verb.RECOVER:
        acts = contender.role is Role.STUCK or contender.stray is not None
        return "" if acts else f"it is not stuck (role: {contender.role})"
    if verb is Verb.CONFIRM_OFF:
        guards = contender.guard is not None and contender.guard.end is None
        return "" if guards else f"it waits for no machine to be off (role: {contender.role})"
    if contender.role is Role.STOPPED:
        return "it has ended, and the file has it no more"
    return "" if contender.settings.contend else "it only observes (contend: false)"


def _what_came_of(verb: Verb, before: Contender, until: float, own: str, *, by_name: bool) -> str:
    """Return the effect of a command. ``own``: who has paused the item beside drain. Blank: nobody."""
    rests = before.role is Role.RESTING
    if verb is Verb.RECOVER and before.stray is not None:
        return "nothing of it acts here by your word; its tenure record is being ended"
    if verb is Verb.RECOVER:
        return "recovered; its lock is being released" + ("; it stays paused" if before.paused else "")
    if verb is Verb.CONFIRM_OFF:
        return "the machine of the former holder is off by your word; this node goes on"
    if verb in (Verb.PAUSE, Verb.DRAIN):
        holds = before.tenure is not None and before.tenure.believes
        ends = when(until) if until != NEVER else "undrain" if verb is Verb.DRAIN else "resume"
        former = f", in place of the pause {own}" if own and verb is Verb.PAUSE else ""
        return f"paused until {ends}{former}" + ("; it holds until step-down or a loss" if holds else "")
    if verb is Verb.UNDRAIN and own:
        return f"stays paused {own}"
    if rests:
        return "its rest after step-down has ended"
    if before.settings.manual and by_name:
        return "it tries until the end of its next tenure, a pause, or a restart of this daemon"
    still = "; it stays paused everywhere until `resume --everywhere`" if before.withheld else ""
    what = "pause" if not before.drained else "pause and its drain" if own else "drain"
    return (f"its {what} has ended" if before.paused else "it was neither paused nor resting") + still


def _forgotten(why: str) -> str:
    return f"it is done, but a restart forgets it{why}"


def _cannot(verb: Verb, name: str, why: str, outcome: Result = Result.IMPOSSIBLE) -> Reply:
    return Reply(outcome, f"cannot {verb} {name}: {why}")
