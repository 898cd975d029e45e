"""What a process that starts makes of the file and of the records of those before it.

An item of the file goes on with its record where that still fits; otherwise the record is wound
up by the settings it was made with, and only then does the file's begin. Nothing that is
on record is ever passed over. Pure: records and settings in, contenders out.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from supervisor.core.actions import EMPTY_RECORD, LOSE_SIDE, Reason, Record, Step
from supervisor.core.contender import Contender
from supervisor.core.contenders import Successor
from supervisor.core.creation import contender_of, departing_contender
from supervisor.core.record import is_adoptable
from supervisor.core.reload import blockers_of
from supervisor.core.settings import ItemSettings, Wanted
from supervisor.journal import MachineIdentity, Recorded, UnreadableRecord

UNKNOWN_SESSION = "unreadable"  # stands for the session of a record that cannot be read


@dataclass(frozen=True, slots=True)
class Restored:
    """``contenders`` begin now, ``successors`` when what is in their way has wound up."""

    contenders: tuple[Contender, ...]
    successors: tuple[Successor, ...] = ()

    @property
    def settings(self) -> Iterator[ItemSettings]:
        """All that will ever be in force."""
        for contender in (*self.contenders, *(each.contender for each in self.successors)):
            yield contender.settings
            if contender.next_settings is not None:
                yield contender.next_settings


@dataclass(frozen=True, slots=True)
class ProcessIdentity:
    """What the contenders of one process have in common: its name in ids, whose it is, the time."""

    instance: str
    identity: MachineIdentity
    now: float


def restore(
    wanted: Iterable[Wanted],
    records: Mapping[str, Recorded | UnreadableRecord],
    origin: ProcessIdentity,
) -> Restored:
    """The contenders to begin with. ``wanted``: those of the file."""
    wanted = tuple(wanted)
    departing = _departing_of({each.settings.name: each.settings for each in wanted}, records, origin)
    contenders = list(departing.values())
    successors: list[Successor] = []
    for each in wanted:
        settings = each.settings
        record = records.get(settings.name)
        state = EMPTY_RECORD if record is None else _state(record, origin)
        after = blockers_of(settings, departing)
        if settings.name in departing:
            state = replace(EMPTY_RECORD, paused=state.paused)
        if any(departing[name].paused for name in after):
            state = replace(state, paused=True)
        recorded = None if record is None else record.settings
        contender = contender_of(
            each, instance=origin.instance, record=state, recorded=recorded, now=origin.now
        )
        if after and contender.tenure is None:
            successors.append(Successor(contender, after))
        else:
            contenders.append(contender)
    return Restored(tuple(contenders), tuple(successors))


def _departing_of(
    wanted: Mapping[str, ItemSettings],
    records: Mapping[str, Recorded | UnreadableRecord],
    origin: ProcessIdentity,
) -> dict[str, Contender]:
    """What is on record and cannot go on as the file has it now."""
    departing = {}
    for name, record in records.items():
        state, settings = _state(record, origin), wanted.get(name)
        if record.settings is None:
            continue
        if settings is None or not is_adoptable(state, record.settings, settings):
            departing[name] = departing_contender(
                record.settings, spread=0.5, instance=origin.instance, record=state, now=origin.now
            )
    return departing


def _state(record: Recorded | UnreadableRecord, origin: ProcessIdentity) -> Record:
    """Of a record that cannot be read the worst is taken for true: on_lose runs, once. A pause that its
    older lines tell of stays in force, because an operator can see and end it."""
    if isinstance(record, UnreadableRecord):
        session = f"{UNKNOWN_SESSION}-{origin.instance}"
        paused = record.last is not None and record.last.state.paused
        return Record(Step.LOSING, session=session, reason=Reason.CRASHED, paused=paused, foreign=True)
    state = record.state
    if state.step is Step.NONE:
        return state
    if state.step in (Step.TENURE, Step.HOLDING) and _was_losing(record):
        state = replace(state, step=Step.LOSING, reason=Reason.CRASHED)
    return replace(state, foreign=state.foreign or record.identity != origin.identity)


def transitions_of(state: Record) -> tuple[str, ...]:
    """The hooks that may have been under way at the crash; a finished on_acquire is not among them."""
    if state.step in (Step.NONE, Step.SESSION, Step.STUCK):
        return ()
    begun = ("acquire", "adopt") if state.step is Step.TENURE else ()
    return marks_of(state.session, *begun, "run", *LOSE_SIDE)


def marks_of(session: str, *events: str) -> tuple[str, ...]:
    """The ids of these transitions of a session."""
    return tuple(f"{session}-{event}" for event in events)


def _was_losing(record: Recorded) -> bool:
    """A crash came between the begin of on_lose and the record of it, but its process was found."""
    lose = marks_of(record.state.session, *LOSE_SIDE)
    return any(group.transition in lose for group in record.groups)
