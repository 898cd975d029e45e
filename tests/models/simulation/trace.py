"""A simulation as a table: time, node, event, actions.

Rows are kept as values and become text only when the table is printed.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from supervisor.core import actions as a
from supervisor.core import events as e
from supervisor.core import outcomes as o
from supervisor.core import requests as r
from tests.models.simulation.files import KEY


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the table.

    what: an event of a supervisor, or words about the world around it.
    """

    at: float
    who: str
    what: e.Event | str
    done: tuple[a.Action, ...] = ()

    def text(self) -> str:
        """Return one line of the table."""
        what = self.what if isinstance(self.what, str) else say_event(self.what)
        done = ", ".join(filter(None, map(say_action, self.done)))
        return f"{self.at:9.3f}  {self.who:6}  {what:58}  {done}".rstrip()


HEAD = f"{'time':>9}  {'who':6}  {'what happened':58}  what was done"


class Trace:
    """All rows of one simulation."""

    def __init__(self) -> None:
        self.rows: list[Row] = []

    def turn(self, at: float, who: str, event: e.Event, actions: list[a.Action]) -> None:
        """Add a step of a supervisor; a tick without an effect is no row."""
        if actions or not isinstance(event, e.Tick):
            self.rows.append(Row(at, who, event, tuple(actions)))

    def note(self, at: float, who: str, words: str) -> None:
        """Add a row about the world around the supervisors."""
        self.rows.append(Row(at, who, words))

    def lines(self, last: int = 0) -> Iterator[str]:
        """Return the table; ``last`` rows only, unless 0."""
        yield HEAD
        for row in self.rows[-last:]:
            yield row.text()


# --- in words ------------------------------------------------------------------------------------


def say_event(event: e.Event) -> str:
    """Describe an event in a few words."""
    match event:
        case e.Answered(request, outcome):
            return f"{_name(request)}: {_say_outcome(outcome)}"
        case e.HookEnded(started, ok):
            return f"{started.hook.name} ended: {'ok' if ok else 'failed'}"
        case e.RunEnded():
            return "run ended"
        case e.RecordWritten(write, why_not):
            told = "cannot be written" if why_not else "written"
            return f"record {write.record.step}: {told}"
        case e.Stalled(late_s):
            return f"stood still for {late_s:.2f} s"
    return _name(event)


def _say_outcome(outcome: o.Outcome) -> str:
    match outcome:
        case o.Unknown(why) | o.Denied(why) | o.Refused(why) | o.Ineligible(why):
            return f"{_name(outcome)} ({why[:24]})"
        case o.Created(session):
            return f"Created {short(session)}"
        case o.Won(modify_index=token):
            return f"Won, token {token}"
        case o.SlotWritten(lock=None):
            return "in line"
        case o.SlotWritten(lock=o.KeyIndexes(modify_index=token)):
            return f"has a slot, token {token}"
        case o.SlotsView(index, lock, contenders):
            alive = sum(key.is_alive for key in contenders)
            return f"{_say_lock(lock)}, {alive} alive, index {index}"
        case o.KeyView() if not outcome.present:
            return f"absent, index {outcome.index}"
        case o.KeyView():
            return f"held by {short(outcome.session) or 'nobody'}, index {outcome.index}"
    return _name(outcome)


def _say_lock(lock: o.LockKey | None) -> str:
    if lock is None or lock.slot_record is None:
        return "no record" if lock is None else "no semaphore's record"
    holders = " ".join(map(short, lock.slot_record.holders)) or "nobody"
    return f"held by {holders}"


def say_action(action: a.Action) -> str:
    """Describe an action in a few words; blank for preparations."""
    match action:
        case a.PrepareWrite():
            return ""
        case a.RoleChanged(role=role, reason=reason):
            return f"is {role}{f' ({reason})' if reason else ''}"
        case a.StartHook(hook, attempt, context):
            again = f" again ({attempt})" if attempt > 1 else ""
            return f"{hook.name}{again} begins ({context.reason})"
        case a.KillHook(started):
            return f"kills {started.hook.name}"
        case a.StartRun():
            return "run begins"
        case a.StopRun():
            return "stops run"
        case a.WriteRecord(record=record):
            return f"writes {record.step}"
        case a.Finished(clean=clean):
            return f"has wound up{'' if clean else ', stuck'}"
        case r.ReadKey(key=key) if key != KEY:
            return f"ReadKey {key.rpartition('/')[2][:5]}"
        case r.CreateSession() | r.ReadKey() | r.ReadSlots():
            return _name(action)
        case (
            r.WatchKey(index=index, consistent=consistent) | r.WatchSlots(index=index, consistent=consistent)
        ):
            return f"{_name(action)} {index}{' consistent' if consistent else ''}"
    return f"{_name(action)} {short(getattr(action, 'session', ''))}"


def short(session: str) -> str:
    """Return the beginning of an id."""
    return session[:4]


def _name(value: object) -> str:
    return type(value).__name__
