"""Events, actions and outcomes in a few words, for the way to a broken promise."""

from supervisor.core import actions as a
from supervisor.core import events as e
from supervisor.core import outcomes as o
from supervisor.core import requests as r


def line(event: object, begun: tuple[object, ...]) -> str:
    """Return a line with an event and the actions that follow from it."""
    return f"{short(event)} -> {', '.join(map(short, begun)) or '-'}"


def short(value: object) -> str:
    """Return the event, action or request without the parts that a reader does not need."""
    match value:
        case e.Answered(request, outcome):
            return f"{short(request)} = {short(outcome)}"
        case e.HookEnded(started, ok=ok):
            return f"{started.hook.name} ended {'well' if ok else 'badly'}"
        case e.RecordWritten(why_not=why_not):
            return why_not or "recorded"
        case a.StartHook(hook, attempt):
            return f"start {hook.name}#{attempt}"
        case a.WriteRecord(record=record):
            return f"record {record.step} {record.session}".rstrip()
        case a.RoleChanged(role=role):
            return f"became {role}"
        case o.KeyView():
            guarded = " guarded" if value.is_guarded else ""
            return f"{value.session or 'free'}{guarded} {value.modify_index}"
        case o.TenureShown(record=record):
            return "no record" if record is None else f"{record.state} {record.session}"
        case r.MarkTenure(record=record):
            return f"MarkTenure {record.session} {record.state} for {record.target or 'nobody'}"
        case r.Acquire(session=session, claim=claim):
            return f"Acquire {session}{' over' if value.over else '' if claim is None else ' with record'}"
        case r.Release(session=session):
            return f"Release {session}{' over' if value.over else ' and record' if value.ends_record else ''}"
        case r.Rewrite(session=session, claim=claim):
            ended = " without record" if value.ends_record else ""
            return f"Rewrite {session}{ended if claim is None else ' with record'}"
        case r.WatchKey(index=index, consistent=consistent):
            return f"WatchKey({index}{', consistent' if consistent else ''})"
        case o.Won() | o.Created() | o.Unknown() | o.SessionAlive() | o.SessionInfo():
            return type(value).__name__
        case r.Request():
            return f"{type(value).__name__} {getattr(value, 'session', '')}".rstrip()
    return type(value).__name__
