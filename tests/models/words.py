"""Events, actions and outcomes in a few words, for the way to a broken promise."""

from supervisor.core import actions as a
from supervisor.core import events as e
from supervisor.core import outcomes as o
from supervisor.core import requests as r

ID_CHARS = 5  # of a session's id


def line(event: object, begun: tuple[object, ...]) -> str:
    """Return a line with an event and the actions that follow from it."""
    return f"{short(event)} -> {', '.join(map(short, begun)) or '-'}"


def short(value: object) -> str:
    """Return the event, action or request without the parts that a reader does not need."""
    name, session = type(value).__name__, str(getattr(value, "session", ""))[:ID_CHARS]
    match value:
        case e.Answered(request, outcome):
            return f"{short(request)} = {short(outcome)}"
        case e.HookEnded(started, ok=ok):
            return f"{started.hook.name} ended {'well' if ok else 'badly'}"
        case e.RecordWritten(why_not=why_not):
            return why_not or "recorded"
        case e.Stalled(late_s):
            return f"stood still for {late_s:.2f} s"
        case a.StartHook(hook, attempt):
            return f"start {hook.name}#{attempt}"
        case a.KillHook(started):
            return f"kill {started.hook.name}"
        case a.WriteRecord(record=record):
            return f"record {record.step} {record.session[:ID_CHARS]}".rstrip()
        case a.RoleChanged(role=role):
            return f"became {role}"
        case o.KeyView():
            guarded = " guarded" if value.has_record_flags else ""
            return f"{session or 'free'}{guarded} {value.modify_index}"
        case o.SlotsView(lock=lock):
            holders = () if lock is None or lock.slot_record is None else lock.slot_record.holders
            named = " ".join(holder[:ID_CHARS] for holder in holders) or "nobody"
            return f"held by {named}, {len(value.contenders)} contenders"
        case o.SlotWritten(lock=lock):
            return "in line" if lock is None else f"has a slot, token {lock.modify_index}"
        case o.TenureShown(record=record):
            return "no record" if record is None else f"{record.state} {record.session}"
        case o.Unknown(why) | o.Denied(why) | o.Refused(why) | o.Ineligible(why):
            return f"{name} ({why[:24]})"
        case r.MarkTenure(record=record):
            return f"{name} {session} {record.state} for {record.target or 'nobody'}"
        case r.Acquire(record=claim):
            own = "" if claim is None else " with record"
            return f"{name} {session}{' over' if value.over_record else own}"
        case r.Release(ends_record=ends):
            return f"{name} {session}{' over' if value.over_record else ' and record' if ends else ''}"
        case r.Rewrite(record=claim):
            ended = " without record" if value.ends_record else ""
            return f"{name} {session}{ended if claim is None else ' with record'}"
        case r.WatchTenure(index=index):
            return f"{name}({index})"
        case (
            r.WatchKey(index=index, consistent=consistent) | r.WatchSlots(index=index, consistent=consistent)
        ):
            return f"{name}({index}{', consistent' if consistent else ''})"
    return f"{name} {session}".rstrip() if isinstance(value, r.Request) else name
