"""What a process that starts makes of the file and of the records of those before it.

An election of the file goes on with its record where that still fits; otherwise the record is wound
up by the settings it was made with, and only then does the file's election begin. Nothing that is
on record is ever passed over. Pure: records and settings in, elections out.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from supervisor.core.actions import Memory, Reason, Step
from supervisor.core.election import NOTHING, Election, departing_election, new_election
from supervisor.core.memory import is_adoptable
from supervisor.core.settings import ElectionSettings
from supervisor.journal import Identity, Recorded, Unreadable

UNKNOWN_SESSION = "unreadable"  # stands for the session of a record that cannot be read


@dataclass(frozen=True, slots=True)
class Start:
    """``elections`` begin now; each of ``successors`` when the one of its name has wound up."""

    elections: tuple[Election, ...]
    successors: tuple[Election, ...] = ()


@dataclass(frozen=True, slots=True)
class Origin:
    """What the elections of one process have in common: its name in ids, whose it is, the time."""

    instance: str
    identity: Identity
    now: float


def start(
    wanted: Iterable[tuple[ElectionSettings, float]],
    records: Mapping[str, Recorded | Unreadable],
    origin: Origin,
) -> Start:
    """The elections to begin with. ``wanted``: those of the file, each with its spread in [0, 1)."""
    elections: list[Election] = []
    successors: list[Election] = []
    left = dict(records)
    for settings, spread in wanted:
        record = left.pop(settings.name, None)
        memory = NOTHING if record is None else _memory(record, origin.identity)
        if isinstance(record, Recorded) and not is_adoptable(memory, record.settings, settings):
            elections.append(_departing(record, memory, origin))
            successors.append(_fresh(settings, spread, replace(NOTHING, paused=memory.paused), origin))
        else:
            elections.append(_fresh(settings, spread, memory, origin))
    for record in left.values():
        if isinstance(record, Recorded):
            elections.append(_departing(record, _memory(record, origin.identity), origin))
    return Start(tuple(elections), tuple(successors))


def _fresh(settings: ElectionSettings, spread: float, memory: Memory, origin: Origin) -> Election:
    return new_election(settings, spread=spread, instance=origin.instance, memory=memory, now=origin.now)


def _departing(record: Recorded, memory: Memory, origin: Origin) -> Election:
    return departing_election(
        record.settings, spread=0.5, instance=origin.instance, memory=memory, now=origin.now
    )


def _memory(record: Recorded | Unreadable, identity: Identity) -> Memory:
    """Of a record that cannot be read the worst is taken for true: on_lose runs, once."""
    if isinstance(record, Unreadable):
        return Memory(Step.LOSING, session=UNKNOWN_SESSION, reason=Reason.CRASHED, foreign=True)
    memory = record.memory
    if memory.step is Step.NONE:
        return memory
    if memory.step in (Step.TENURE, Step.HOLDING) and _was_losing(record):
        memory = replace(memory, step=Step.LOSING, reason=Reason.CRASHED)
    return replace(memory, foreign=memory.foreign or record.identity != identity)


def transitions_of(memory: Memory) -> tuple[str, ...]:
    """The hooks that may have been under way at the crash; a finished on_acquire is not among them."""
    if memory.step in (Step.NONE, Step.SESSION):
        return ()
    begun = ("acquire", "adopt") if memory.step is Step.TENURE else ()
    return tuple(f"{memory.session}-{event}" for event in (*begun, *LOSE_SIDE))


LOSE_SIDE = ("lose", "lose-failure")


def _was_losing(record: Recorded) -> bool:
    """A crash came between the begin of on_lose and the record of it, but its process was found."""
    lose = tuple(f"{record.memory.session}-{event}" for event in LOSE_SIDE)
    return any(group.transition in lose for group in record.groups)
