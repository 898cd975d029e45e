"""What an operator asks of the running daemon, as events for the core, and what is replied.

It looks at roles to say why something cannot be; whether it is done is the core's to decide.
"""

from collections.abc import Callable

from supervisor.control import Command, Outcome, Reply, Verb
from supervisor.core.actions import Role
from supervisor.core.contender import Contender
from supervisor.core.events import Event, PauseAsked, RecoverAsked, ResumeAsked
from supervisor.core.node import Node

DONE = Reply(Outcome.DONE)
_EVENTS: dict[Verb, Callable[[str], Event]] = {
    Verb.RECOVER: RecoverAsked,
    Verb.PAUSE: PauseAsked,
    Verb.RESUME: ResumeAsked,
}


class Operator:
    """Answers commands about the contenders of one node."""

    def __init__(self, node: Node, dispatch: Callable[[Event], None]) -> None:
        self._node = node
        self._dispatch = dispatch

    def ask(self, command: Command) -> Reply:
        """Do it, at once, and say what became of it; with all contenders the first refusal counts."""
        known = {**self._node.contenders, **self._node.waiting}
        if command.name is not None and command.name not in known:
            why = f"no such election or semaphore, there are {', '.join(sorted(known)) or 'none'}"
            return _cannot(command.verb, command.name, why, Outcome.UNKNOWN)
        contending = [name for name, contender in known.items() if not _obstacle(Verb.PAUSE, contender)]
        names = contending if command.name is None else [command.name]
        replies = [self._one(command.verb, name) for name in names]
        return next((reply for reply in replies if reply is not DONE), DONE)

    def _one(self, verb: Verb, name: str) -> Reply:
        before = self._node.contenders.get(name)
        if before is None or (before.role is Role.STOPPED and name in self._node.waiting):
            others = ", ".join(sorted(self._node.waiting_for(name)))
            return _cannot(verb, name, f"it begins when {others} has ended, of its name or its key")
        if why := _obstacle(verb, before):
            return _cannot(verb, name, why)
        self._dispatch(_EVENTS[verb](name))
        after = self._node.contenders[name]
        kept = after.ledger.kept
        if kept is None or kept.paused != after.paused:
            return _cannot(
                verb, name, "it is so now, but cannot be recorded: a restart forgets it (see the log)"
            )
        return DONE


def _obstacle(verb: Verb, contender: Contender) -> str:
    if verb is Verb.RECOVER:
        return "" if contender.role is Role.STUCK else f"it is not stuck (role: {contender.role})"
    if contender.role is Role.STOPPED:
        return "it has ended, and the file has it no more"
    return "" if contender.settings.contend else "it only observes (contend: false)"


def _cannot(verb: Verb, name: str, why: str, outcome: Outcome = Outcome.IMPOSSIBLE) -> Reply:
    return Reply(outcome, f"cannot {verb} {name}: {why}")
