"""The contenders with which a process starts, from the configuration and the records of earlier processes.

An item of the configuration goes on with its record where the record still fits. Otherwise the record is
wound up by the settings that it was made with, and only then does the item begin. No record is ever ignored.
Pure functions: records and settings in, contenders out.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from supervisor.adapters.journal import MachineIdentity, Recorded, UnreadableRecord
from supervisor.core.actions import EMPTY_RECORD, LOSE_SIDE, Point, Reason, Record
from supervisor.core.contender.creation import contender_of, new_contender
from supervisor.core.contender.lifecycle import depart
from supervisor.core.contender.state import Contender
from supervisor.core.contenders import Successor
from supervisor.core.machines.record import is_adoptable
from supervisor.core.reload import blockers_of
from supervisor.core.settings import ItemSettings, Wanted

UNKNOWN_SESSION = "unreadable"  # in the place of the session of a record that cannot be read


@dataclass(frozen=True, slots=True)
class Restored:
    """The contenders of a process that starts."""

    contenders: tuple[Contender, ...]  # those that begin now
    successors: tuple[Successor, ...] = ()  # those that begin when others have been wound up

    @property
    def settings(self) -> Iterator[ItemSettings]:
        """All settings that will ever be in force."""
        for contender in (*self.contenders, *(each.contender for each in self.successors)):
            yield contender.settings
            if contender.next_settings is not None:
                yield contender.next_settings


@dataclass(frozen=True, slots=True)
class ProcessIdentity:
    """The properties that the contenders of one process share."""

    instance: str  # the name of the process in ids
    identity: MachineIdentity  # the machine, host and boot
    now: float  # the time of the start, in seconds of the core's clock


def restore(
    wanted: Iterable[Wanted],
    records: Mapping[str, Recorded | UnreadableRecord],
    origin: ProcessIdentity,
    *,
    unwanted: Reason = Reason.CONFIG_CHANGED,
) -> Restored:
    """Return the contenders to begin with.

    wanted: the items of the configuration.
    unwanted: why all that is on record beside them is given up.
    """
    wanted = tuple(wanted)
    by_name = {each.settings.name: each.settings for each in wanted}
    departing = _departing_of(by_name, records, origin, unwanted)
    contenders = list(departing.values())
    successors: list[Successor] = []
    for each in wanted:
        settings = each.settings
        record = records.get(settings.name)
        state = EMPTY_RECORD if record is None else _state(record, origin)
        after = blockers_of(settings, departing)
        if settings.name in departing:
            state = EMPTY_RECORD  # it gets the pause once the departing one has ended
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
    reason: Reason,
) -> dict[str, Contender]:
    """Return contenders, by name, for the records that the settings of the configuration do not fit."""
    departing = {}
    for name, record in records.items():
        state, settings = _state(record, origin), wanted.get(name)
        if record.settings is None:
            continue
        if settings is None or not is_adoptable(state, record.settings, settings):
            contender = new_contender(
                record.settings, spread=0.5, instance=origin.instance, record=state, now=origin.now
            )
            departing[name] = depart(contender, origin.now, reason)
    return departing


def _state(record: Recorded | UnreadableRecord, origin: ProcessIdentity) -> Record:
    """Return the record to begin with.

    For a record that cannot be read the worst is assumed, so that on_lose runs once. A pause in its older
    lines stays in force, because an operator can see and end a pause.
    """
    if isinstance(record, UnreadableRecord):
        session = f"{UNKNOWN_SESSION}-{origin.instance}"
        last = EMPTY_RECORD if record.last is None else record.last.state
        pause = Record(paused=last.paused, pause_ends_at=last.pause_ends_at, stays_until=last.stays_until)
        return replace(pause, step=Point.LOSING, session=session, reason=Reason.CRASHED, foreign=True)
    state = record.state
    if state.step is Point.NONE:
        return state
    lose = marks_of(state.session, *LOSE_SIDE)  # processes of the lose side, begun just before the crash
    if state.step in (Point.TENURE, Point.HOLDING) and any(each.transition in lose for each in record.groups):
        state = replace(state, step=Point.LOSING, reason=Reason.CRASHED)
    return replace(state, foreign=state.foreign or record.identity != origin.identity)


def transitions_of(state: Record) -> tuple[str, ...]:
    """Return the transitions of hooks that a crash may have cut. A finished on_acquire is not among them."""
    if state.step in (Point.NONE, Point.SESSION, Point.STUCK):
        return ()
    begun = ("acquire", "adopt") if state.step is Point.TENURE else ()
    return marks_of(state.session, *begun, "run", *LOSE_SIDE)


def marks_of(session: str, *events: str) -> tuple[str, ...]:
    return tuple(f"{session}-{event}" for event in events)
