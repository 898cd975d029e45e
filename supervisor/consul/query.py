"""Questions to Consul, and one change, for commands that run without the daemon."""

from dataclasses import replace

from supervisor.config import ConsulSettings
from supervisor.consul.codec import Codec
from supervisor.consul.token import Token
from supervisor.core.outcomes import Done, KeyView, LostRace, Outcome, SlotsView
from supervisor.core.requests import ReadKey, ReadSlots, Request, WriteSemaphoreRecord
from supervisor.core.settings import LOCK_SUFFIX
from supervisor.errors import NotPossible, PeerError
from supervisor.transport import Endpoint, ExchangeFailed, Transport

LOOKUP_S = 10.0  # Consul holds a request for 7 s while it has no leader
NOT_MADE = "nobody has made it yet, so the file's limit counts; the first that contends makes it"
RACES_MAX = 20  # who changes the record at the same time does so a few times at most


class LookupFailed(PeerError):
    """Consul did not tell; the text says why."""


class CannotChange(NotPossible):
    """What stands in Consul cannot be changed as asked; the text says why."""


async def key_now(settings: ConsulSettings, key: str) -> KeyView:
    """The key, read consistently: as it was at some moment between the question and the answer.

    Raises LookupFailed when Consul cannot be reached or does not answer, TokenError when the
    token file cannot be used.
    """
    outcome = await _asked(settings, ReadKey("", 0.0, LOOKUP_S, key))
    if not isinstance(outcome, KeyView):
        raise LookupFailed(f"cannot read {key}: Codec answers {_said(outcome)}")
    return outcome


async def slots_now(settings: ConsulSettings, prefix: str) -> SlotsView:
    """All below a semaphore's prefix, likewise."""
    outcome = await _asked(settings, ReadSlots("", 0.0, LOOKUP_S, prefix))
    if not isinstance(outcome, SlotsView):
        raise LookupFailed(f"cannot read {prefix}/: Codec answers {_said(outcome)}")
    if outcome.hides:
        rule = f'give the token: key_prefix "{prefix}/" {{ policy = "read" }}'
        raise LookupFailed(
            f"cannot tell: Codec leaves out below {prefix}/ what the token may not read; {rule}"
        )
    return outcome


async def set_limit(settings: ConsulSettings, prefix: str, limit: int) -> None:
    """Rewrite the Limit of the semaphore's record, and nothing else of it.

    Raises LookupFailed as above; CannotChange when there is no record that this could be done to.
    """
    for _ in range(RACES_MAX):
        lock = (await slots_now(settings, prefix)).lock
        if lock is None and (await key_now(settings, prefix + LOCK_SUFFIX)).present:
            continue  # made a moment ago, or a list that does not show it
        if lock is None or lock.roster is None:
            why = NOT_MADE if lock is None else f"{lock.why}; delete the key, and it is made anew"
            raise CannotChange(f"cannot change the limit in {prefix}/.lock: {why}")
        if lock.roster.limit == limit:
            return
        roster = replace(lock.roster, limit=limit)
        outcome = await _asked(
            settings, WriteSemaphoreRecord("", 0.0, LOOKUP_S, prefix, roster, lock.modify_index)
        )
        if isinstance(outcome, Done):
            return
        if not isinstance(outcome, LostRace):
            raise LookupFailed(f"cannot change the limit in {prefix}/.lock: Codec answers {_said(outcome)}")
    raise CannotChange(f"cannot change the limit in {prefix}/.lock: others change it all the time, try again")


def _said(outcome: Outcome) -> str:
    return str(getattr(outcome, "why", outcome))


async def _asked(settings: ConsulSettings, request: Request) -> Outcome:
    endpoint = Endpoint.of(settings.address, settings.tls)
    consul = Codec(settings, endpoint.base_url, Token(settings))
    transport = Transport(endpoint)
    try:
        response = await transport.exchange(consul.encode(request), timeout_s=LOOKUP_S, fresh=True)
    except ExchangeFailed as failure:
        raise LookupFailed(f"cannot ask Consul: {failure}") from None
    finally:
        await transport.close()
    return consul.decode(request, response)


def _is_relocked(lock_index: int, then: int | None) -> bool:
    """A plain PUT over a held key leaves the lock and sets its LockIndex to 0: then the session alone
    decides. Any other difference tells of a lock that was given up and taken anew."""
    return then is not None and lock_index not in (then, 0)


def why_not_held(view: KeyView, session: str, lock_index: int | None) -> str:
    """Blank when this session holds the key since it was locked at ``lock_index``; else why not."""
    if not view.session:
        return "nobody holds it"
    if view.session != session:
        return "another session holds it"
    if _is_relocked(view.lock_index, lock_index):
        return f"the session has locked it anew: its LockIndex is {view.lock_index}, not {lock_index}"
    return ""


async def why_no_slot(
    settings: ConsulSettings, prefix: str, view: SlotsView, session: str, lock_index: int | None
) -> str:
    """Blank when this session has a slot, and its contender key since it was locked at ``lock_index``.

    Raises LookupFailed where that cannot be told: a list may show less than there is.
    """
    if view.roster is None:
        raise LookupFailed(f"cannot tell who has a slot below {prefix}: {view.lock.why if view.lock else ''}")
    hold = view.hold_of(session)
    if session in view.roster.holders and view.alive(session) is None:
        key = f"{prefix}/{session}"
        if (await key_now(settings, key)).present:
            raise LookupFailed(f"cannot tell: the list does not show {key}; may the token read all of it?")
    if hold is None and view.filtered:
        raise LookupFailed(f"cannot tell: Codec leaves out below {prefix}/ what the token may not read")
    if hold is None:
        alive = view.alive(session) is not None
        return "the session has no slot" if alive else "the session has no contender key"
    if _is_relocked(hold.lock_index, lock_index):
        return f"the session has locked its key anew: its LockIndex is {hold.lock_index}, not {lock_index}"
    return ""
