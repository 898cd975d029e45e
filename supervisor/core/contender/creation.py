"""How a contender is made: from the file, from the record, or as the successor of another contender.

A new contender has sent nothing and started nothing. Its first step is due at once, and begins all that
follows from the settings and the record.
"""

from typing import Any

from supervisor.core.actions import EMPTY_RECORD, Point, Record, Role
from supervisor.core.beside import candidate_check as healths
from supervisor.core.beside.maintenance import new_maintenance
from supervisor.core.beside.on_change import Change
from supervisor.core.claim.claim import Claim, Standing
from supervisor.core.contender.lifecycle import want_session, want_session_anew
from supervisor.core.contender.state import Contender
from supervisor.core.frozen import replace
from supervisor.core.lease import lease_of
from supervisor.core.lock.base import Lock
from supervisor.core.lock.election import ElectionLock
from supervisor.core.lock.semaphore import SemaphoreLock
from supervisor.core.machines import record as records
from supervisor.core.machines.record import RecordKeeper
from supervisor.core.settings import NOWHERE, ItemSettings, Place, SemaphoreSettings, Wanted
from supervisor.core.times import LONG_AGO, NEVER


def new_contender(
    settings: ItemSettings,
    *,
    spread: float,
    instance: str,
    record: Record = EMPTY_RECORD,
    recorded: ItemSettings | None = None,
    now: float = 0.0,
    place: Place = NOWHERE,
) -> Contender:
    """Return a contender that has sent Consul nothing yet; its first step is due at once.

    record: the record of an earlier process, with which this contender goes on.
    recorded: the settings by which the record was made. They are in force until its tenure is adopted or
        wound up.
    """
    tenure = records.tenure_from(record, now)
    next_settings = None
    if tenure is not None and recorded is not None and recorded != settings:
        settings, next_settings = recorded, settings
    if tenure is not None and settings.watchdog is not None:
        # No device is armed for a tenure of another boot. A damaged record, without a token, may be of this
        # one.
        tenure = replace(tenure, armed=not record.foreign or not record.token)
    contender = Contender(
        settings=settings,
        next_settings=next_settings,
        lease=lease_of(settings, leased_s=0.0 if tenure is None else tenure.leased_s),
        spread=spread,
        session=records.session_from(record, recorded, now),
        change=Change(instance),
        health=healths.new_health(settings),
        maintenance=new_maintenance(settings),
        lock=_lock_of(settings, spread),
        tenure=tenure,
        told_role=(Role.WAITING if settings.contend else Role.OBSERVER, ""),
        paused_until=records.paused_until(record),
        stays_until=LONG_AGO if record.stays_until is None else record.stays_until or NEVER,
        record_keeper=RecordKeeper(kept=record if record == EMPTY_RECORD else None, found_s=record.leased_s),
        claim=Claim(place, _standing_of(record)),
    )
    if tenure is not None:
        claim = contender.claim.followed(tenure.session, now) if record.owes else contender.claim
        lock = contender.lock.restored_from(tenure).read_by(now)
        return replace(contender, lock=lock, claim=claim)
    return want_session(contender, LONG_AGO)


def contender_of(
    wanted: Wanted,
    *,
    instance: str,
    now: float,
    record: Record = EMPTY_RECORD,
    recorded: ItemSettings | None = None,
) -> Contender:
    """Return the contender of one item of the file, which waits for its turn among all contenders.

    Its first session waits for ``wanted.delay_s``. A contender that goes on with a record does not wait.
    """
    contender = new_contender(
        wanted.settings,
        spread=wanted.spread,
        instance=instance,
        record=record,
        recorded=recorded,
        now=now,
        place=wanted.place,
    )
    faults = None if wanted.unchecked and wanted.settings.contend else ()
    contender = replace(contender, read_offset=wanted.read_offset, faults=faults, withheld=wanted.withheld)
    if not wanted.delay_s or record.step is not Point.NONE:
        return contender
    return want_session_anew(replace(contender, rejoin_at=now + wanted.delay_s))


INHERITED = ("paused_until", "stays_until", "rejoin_at", "rests_until")


def inherit(heir: Contender, **of: Any) -> Contender:
    """Return the heir, which has not begun, with these INHERITED fields of its predecessor."""
    return want_session_anew(replace(heir, **of))


def _standing_of(record: Record) -> Standing:
    """Return how the session on record stands to the tenure record of its key."""
    if record.step is Point.NONE or record.foreign:
        return Standing.UNSEEN
    return Standing.OWING if record.owes else Standing.CLEAR


def _lock_of(settings: ItemSettings, spread: float) -> Lock:
    of_many = isinstance(settings, SemaphoreSettings)
    lock: Lock = SemaphoreLock() if of_many else ElectionLock(spread=spread)
    return lock.with_settings(settings, LONG_AGO)
