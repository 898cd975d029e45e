"""Single requests to Consul for commands that run without the daemon: reads, and one change."""

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
RACES_MAX = 20  # attempts; a contender changes the record at the same time a few times at most


class LookupFailed(PeerError):
    """A request to Consul without a usable answer; the text says why."""


class CannotChange(NotPossible):
    """A change of data in Consul that is not possible; the text says why."""


async def key_now(settings: ConsulSettings, key: str) -> KeyView:
    """Return the key as it was at some moment between the request and the answer: a consistent read.

    Raises LookupFailed when Consul gives no usable answer, and TokenError when the token file cannot be used.
    """
    outcome = await _exchange(settings, ReadKey("", 0.0, LOOKUP_S, key))
    if not isinstance(outcome, KeyView):
        raise LookupFailed(f"cannot read {key}: Consul answers {_reason(outcome)}")
    return outcome


async def slots_now(settings: ConsulSettings, prefix: str) -> SlotsView:
    """Return all keys below a semaphore's prefix, by one consistent read.

    Raises LookupFailed when Consul gives no usable answer or leaves out keys that the token may not read, and
    TokenError when the token file cannot be used.
    """
    outcome = await _exchange(settings, ReadSlots("", 0.0, LOOKUP_S, prefix))
    if not isinstance(outcome, SlotsView):
        raise LookupFailed(f"cannot read {prefix}/: Consul answers {_reason(outcome)}")
    if outcome.hides:
        rule = f'give the token: key_prefix "{prefix}/" {{ policy = "read" }}'
        raise LookupFailed(f"cannot tell: {_left_out(prefix)}; {rule}")
    return outcome


async def set_limit(settings: ConsulSettings, prefix: str, limit: int) -> None:
    """Write the Limit of the semaphore's record, and keep the other fields.

    Raises LookupFailed when Consul gives no usable answer, CannotChange when there is no valid record or
    contenders change it at each attempt, and TokenError when the token file cannot be used.
    """
    for _ in range(RACES_MAX):
        lock = (await slots_now(settings, prefix)).lock
        if lock is None and (await key_now(settings, prefix + LOCK_SUFFIX)).present:
            continue  # because the record was made a moment ago, or the list does not show it
        if lock is None or lock.roster is None:
            why = NOT_MADE if lock is None else f"{lock.why}; delete the key, and it is made anew"
            raise CannotChange(f"cannot change the limit in {prefix}/.lock: {why}")
        if lock.roster.limit == limit:
            return
        roster = replace(lock.roster, limit=limit)
        write = WriteSemaphoreRecord("", 0.0, LOOKUP_S, prefix, roster, lock.modify_index)
        outcome = await _exchange(settings, write)
        if isinstance(outcome, Done):
            return
        if not isinstance(outcome, LostRace):
            why = f"Consul answers {_reason(outcome)}"
            raise LookupFailed(f"cannot change the limit in {prefix}/.lock: {why}")
    why = "contenders changed it at each attempt, try again"
    raise CannotChange(f"cannot change the limit in {prefix}/.lock: {why}")


def _reason(outcome: Outcome) -> str:
    return str(getattr(outcome, "why", outcome))


def _left_out(prefix: str) -> str:
    return f"Consul leaves out below {prefix}/ what the token may not read"


async def _exchange(settings: ConsulSettings, request: Request) -> Outcome:
    endpoint = Endpoint.of(settings.address, settings.tls)
    codec = Codec(settings, endpoint.base_url, Token(settings))
    transport = Transport(endpoint)
    try:
        response = await transport.exchange(codec.encode(request), timeout_s=LOOKUP_S, fresh=True)
    except ExchangeFailed as failure:
        raise LookupFailed(f"cannot ask Consul: {failure}") from None
    finally:
        await transport.close()
    return codec.decode(request, response)


def _is_relocked(lock_index: int, then: int | None) -> bool:
    """Return whether the lock was released and acquired again since its LockIndex was ``then``.

    A plain PUT over a held key keeps the lock and sets LockIndex to 0, so 0 is no proof of that.
    """
    return then is not None and lock_index not in (then, 0)


def why_not_held(view: KeyView, session: str, lock_index: int | None) -> str:
    """Return why this session does not hold the key since ``lock_index``. Blank: it does.

    ``lock_index`` None: the session holds the key, whenever it was locked.
    """
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
    """Return why this session has no slot since its contender key was locked at ``lock_index``.

    Blank: the session has its slot. ``lock_index`` None: whenever its contender key was locked.

    Raises LookupFailed when the view does not show this, because a list may leave out keys.
    """
    if view.roster is None:
        raise LookupFailed(f"cannot tell who has a slot below {prefix}: {view.lock.why if view.lock else ''}")
    hold = view.hold_of(session)
    if session in view.roster.holders and view.alive(session) is None:
        key = f"{prefix}/{session}"
        if (await key_now(settings, key)).present:
            raise LookupFailed(f"cannot tell: the list does not show {key}; may the token read all of it?")
    if hold is None and view.filtered:
        raise LookupFailed(f"cannot tell: {_left_out(prefix)}")
    if hold is None:
        alive = view.alive(session) is not None
        return "the session has no slot" if alive else "the session has no contender key"
    if _is_relocked(hold.lock_index, lock_index):
        return f"the session has locked its key anew: its LockIndex is {hold.lock_index}, not {lock_index}"
    return ""
