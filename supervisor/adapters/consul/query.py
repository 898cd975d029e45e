"""Requests to Consul for commands that run without the daemon: reads, and two changes."""

from dataclasses import replace
from typing import Self

import requests

from supervisor.adapters.consul.codec import Codec
from supervisor.adapters.consul.endpoints import DROPPED
from supervisor.adapters.consul.presence import Present, asked_at, not_shown
from supervisor.adapters.consul.responses import error_text
from supervisor.adapters.consul.semaphore import WriteSlotRecord
from supervisor.adapters.consul.sessions import ReadSessions
from supervisor.adapters.consul.token import Token
from supervisor.adapters.transport import Endpoint, ExchangeFailed, Transport
from supervisor.config import ConsulSettings
from supervisor.core.outcomes import Denied, Done, KeyView, LostRace, Outcome, SessionsView, SlotsView, View
from supervisor.core.requests import DestroySession, ReadKey, ReadSlots, Request
from supervisor.core.settings import LOCK_SUFFIX, ItemSettings, SemaphoreSettings
from supervisor.errors import NotPossible, PeerError

LOOKUP_S = 10.0  # Consul holds a request for 7 s while it has no leader
NOT_MADE = "nobody has made it yet, so the file's limit counts; the first that contends makes it"
RACES_MAX = 20  # attempts; a contender changes the record meanwhile a few times at most


class LookupFailed(PeerError):
    """A request to Consul without a usable answer; the text has the reason."""


class NotReadable(LookupFailed):
    """Keys that the token may not read; the text names the rule that it lacks."""


class CannotChange(NotPossible):
    """A change of data in Consul that is not possible; the text has the reason."""


class OneOffClient:
    """Requests of one command, one after another. The reads share a connection.

    Each read raises LookupFailed when Consul gives no usable answer.
    Making a client raises TokenError when the token file cannot be used, as do the functions below.
    """

    def __init__(self, settings: ConsulSettings) -> None:
        endpoint = Endpoint.of(settings.address, settings.tls)
        self.peer = endpoint.peer
        self.codec = Codec(settings, endpoint.base_url, Token(settings))
        self._transport = Transport(endpoint)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *raised: object) -> None:
        await self._transport.close()

    async def exchange(self, request: requests.PreparedRequest, within_s: float) -> requests.Response:
        """Send the request, and return the answer, of any status. Raises ExchangeFailed.

        A write that Consul's agents have lost is sent twice, because none of ours does harm when repeated.
        """
        writes = request.method != "GET"
        response = await self._transport.exchange(request, timeout_s=within_s, fresh=writes)
        if writes and error_text(response) in DROPPED:
            return await self._transport.exchange(request, timeout_s=within_s, fresh=True)
        return response

    async def ask(self, request: Request) -> Outcome:
        """Send the request, and return its outcome. Raises LookupFailed when there is no answer."""
        try:
            response = await self.exchange(self.codec.encode(request), request.timeout_s)
        except ExchangeFailed as failure:
            raise LookupFailed(f"cannot ask Consul: {failure}") from None
        return self.codec.decode(request, response)

    async def key(self, key: str) -> KeyView:
        """Return the key as it was at some moment between the request and the answer: a consistent read."""
        return key_view(key, await self.ask(ReadKey("", 0.0, LOOKUP_S, key)))

    async def slots(self, prefix: str) -> SlotsView:
        """Return all keys below a semaphore's prefix, by one consistent read that leaves none out."""
        for _ in range(RACES_MAX):
            view = slots_view(prefix, await self.ask(ReadSlots("", 0.0, LOOKUP_S, prefix)))
            if not await self.lacks_record(prefix, view):
                return view  # otherwise the record was made a moment ago, or the list does not show it
        raise LookupFailed(f"cannot tell: the list of {prefix}/ does not show {prefix}{LOCK_SUFFIX}")

    async def lacks_record(self, prefix: str, view: SlotsView) -> bool:
        """Return whether the semaphore's record is there although the view lacks it.

        The record is read alone, because a list without a key is no proof of its absence.
        """
        return view.lock is None and (await self.key(prefix + LOCK_SUFFIX)).present

    async def item(self, settings: ItemSettings) -> View:
        if isinstance(settings, SemaphoreSettings):
            view = await self.slots(settings.prefix)
            await self._confirm_vanished(settings.prefix, view)
            return view
        return await self.key(settings.key)

    async def _confirm_vanished(self, prefix: str, view: SlotsView) -> None:
        """Read the contender key of the first holder without one, because the list may hide that key.

        Raises LookupFailed when the key is there.
        """
        listed = {each.name for each in view.contenders}
        for key in [f"{prefix}/{holder}" for holder in view.named if holder not in listed][:1]:
            outcome = await self.ask(ReadKey("", 0.0, LOOKUP_S, key))
            if isinstance(outcome, Denied):
                raise NotReadable(f"cannot tell: {_left_out(prefix)}; {_rule(prefix)}")
            if key_view(key, outcome).present:
                raise LookupFailed(f"cannot tell: the list of {prefix}/ does not show {key}, try again")

    async def sessions(self) -> SessionsView:
        outcome = await self.ask(ReadSessions("", 0.0, LOOKUP_S))
        if not isinstance(outcome, SessionsView):
            raise LookupFailed(f"cannot list sessions: Consul answers {_reason(outcome)}")
        return outcome

    async def present(self, service: str) -> list[Present] | str:
        """Return the daemons that are registered as this service, or why Consul does not show them."""
        try:
            response = await self.exchange(self.codec.question(asked_at(service)), LOOKUP_S)
        except ExchangeFailed as failure:
            return not_shown(service, str(failure))
        return self.codec.decode_present(service, response)


def key_view(key: str, outcome: Outcome) -> KeyView:
    """Return the outcome of a request for the key. Raises LookupFailed when it is no view."""
    if not isinstance(outcome, KeyView):
        raise _failure(outcome)(f"cannot read {key}: Consul answers {_reason(outcome)}")
    return outcome


def slots_view(prefix: str, outcome: Outcome) -> SlotsView:
    """Return the outcome of a request for all keys of a semaphore. Raises LookupFailed when it is no view."""
    if not isinstance(outcome, SlotsView):
        raise _failure(outcome)(f"cannot read {prefix}/: Consul answers {_reason(outcome)}")
    if outcome.hides:
        raise NotReadable(f"cannot tell: {_left_out(prefix)}; {_rule(prefix)}")
    return outcome


def _failure(outcome: Outcome) -> type[LookupFailed]:
    return NotReadable if isinstance(outcome, Denied) else LookupFailed


async def key_now(settings: ConsulSettings, key: str) -> KeyView:
    """Return the key as ``OneOffClient.key`` does, for a command that reads nothing else."""
    async with OneOffClient(settings) as consul:
        return await consul.key(key)


async def destroy(settings: ConsulSettings, session: str) -> None:
    """Destroy the session. Raises LookupFailed."""
    async with OneOffClient(settings) as consul:
        outcome = await consul.ask(DestroySession("", 0.0, LOOKUP_S, session))
    if not isinstance(outcome, Done):
        raise LookupFailed(f"cannot destroy session {session}: Consul answers {_reason(outcome)}")


async def set_limit(settings: ConsulSettings, prefix: str, limit: int) -> int | None:
    """Write the Limit of the semaphore's record, keep the other fields, and return the former Limit, if any.

    Raises CannotChange without a valid record, or if contenders change it at each attempt, and LookupFailed.
    """
    cannot = f"cannot change the limit in {prefix}/.lock"
    async with OneOffClient(settings) as consul:
        for _ in range(RACES_MAX):
            lock = (await consul.slots(prefix)).lock
            if lock is None or lock.slot_record is None:
                why = NOT_MADE if lock is None else f"{lock.why}; delete the key, and it is made anew"
                raise CannotChange(f"{cannot}: {why}")
            if lock.slot_record.limit == limit:
                return limit
            slot_record = replace(lock.slot_record, limit=limit)
            write = WriteSlotRecord("", 0.0, LOOKUP_S, prefix, slot_record, lock.modify_index)
            outcome = await consul.ask(write)
            if isinstance(outcome, Done):
                return lock.slot_record.limit
            if not isinstance(outcome, LostRace):
                raise LookupFailed(f"{cannot}: Consul answers {_reason(outcome)}")
    raise CannotChange(f"{cannot}: contenders changed it at each attempt, try again")


def _reason(outcome: Outcome) -> str:
    return str(getattr(outcome, "why", outcome))


def _left_out(prefix: str) -> str:
    return f"Consul leaves out below {prefix}/ what the token may not read"


def _rule(prefix: str) -> str:
    return f'give the token: key_prefix "{prefix}/" {{ policy = "list" }}'


def _is_relocked(lock_index: int, then: int | None) -> bool:
    """Return whether the lock was released and acquired again since its LockIndex was ``then``.

    A plain PUT over a held key keeps the lock and sets LockIndex to 0, so 0 is no proof of that.
    """
    return then is not None and lock_index not in (then, 0)


async def why_not_held(settings: ConsulSettings, key: str, session: str, lock_index: int | None) -> str:
    """Return why this session does not hold the key or the slot since ``lock_index``. Blank: it does.

    ``lock_index`` None: the session holds it, whenever it was locked. A key that ends with LOCK_SUFFIX may be
    the record of a semaphore. Raises LookupFailed.
    """
    async with OneOffClient(settings) as consul:
        if (prefix := key.removesuffix(LOCK_SUFFIX)) != key:
            slots = await consul.slots(prefix)
            if slots.lock is not None and not slots.lock.is_lock:
                return await _why_no_slot(consul, prefix, slots, session, lock_index)
        view = await consul.key(key)
    if not view.session:
        return "nobody holds it"
    if view.session != session:
        return "another session holds it"
    if _is_relocked(view.lock_index, lock_index):
        return f"the session has locked it anew: its LockIndex is {view.lock_index}, not {lock_index}"
    return ""


async def _why_no_slot(
    consul: OneOffClient, prefix: str, view: SlotsView, session: str, lock_index: int | None
) -> str:
    if view.slot_record is None:
        raise LookupFailed(f"cannot tell who has a slot below {prefix}: {view.lock.why if view.lock else ''}")
    hold = view.find_hold(session)
    if session in view.slot_record.holders and view.alive(session) is None:
        key = f"{prefix}/{session}"
        if (await consul.key(key)).present:
            raise LookupFailed(f"cannot tell: the list does not show {key}; may the token read all of it?")
    if hold is None and view.filtered:
        raise LookupFailed(f"cannot tell: {_left_out(prefix)}")
    if hold is None:
        alive = view.alive(session) is not None
        return "the session has no slot" if alive else "the session has no contender key"
    if _is_relocked(hold.lock_index, lock_index):
        return f"the session has locked its key anew: its LockIndex is {hold.lock_index}, not {lock_index}"
    return ""
