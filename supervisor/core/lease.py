"""The safety arithmetic: how long a holder may believe that it holds while Consul is silent.

``contact`` is the send time of the newest request whose consistent answer showed our session on the key.
However the session ends, Consul lets no rival take the key before the time ``rival = contact + lock_delay``.
Losing takes ``lose_time``, and a ``margin`` stays free. The *room* that is left is how long Consul may be
silent:

    contact                                    contact + room               rival
       |------------- silence is ridden out -------------|-- lose_time --|-margin-|

All functions here are pure functions of the settings. This module must never use a clock or the TTL to decide
belief, because Consul promises only the lock-delay, and documents a TTL as a lower bound. Only with
``accept_overlap``, which gives up the promise, may the TTL become the room.
"""

from supervisor.core.frozen import dataclass, replace
from supervisor.core.settings import ElectionSettings, ItemSettings, SemaphoreSettings

MARGIN_MIN_S = 0.5  # scheduling, a slow fork, the kernel reaping a killed child
MARGIN_SHARE = 0.05  # different rates of two clocks, far more than the error of any crystal
ROOM_MIN_S = 2.0  # with less room, a lost packet or two would cause a failover
LOCK_DELAY_MAX_S = 60.0  # Consul applies no more (structs.MaxLockDelay)
OUTAGE_LOCKOUT_MAX_S = 26 * 3600.0  # a little more than the longest `outage` asks for
OUTAGE_TTL_MAX_S = 15.0  # with `outage`, a longer TTL lets no holder read less often
EXCLUSIVE_DELAY_S = 0.0  # the lock-delay in Consul with `exclusive: true`: a rival waits by the record
PRUNE_DELAY_MAX_S = 3600.0  # a damaged or hostile record must not block a slot for longer than this
INTERVAL_MIN_S = 1.0
TRIES_PER_TTL = 3  # renewals in a TTL and reads in a room, of which two may fail
EXCHANGE_MAX_S = 3.0
RETRY_MIN_S = 0.5  # the pause after no answer: soon enough for the lease, slow enough for a sick agent
RETRY_MAX_S = 1.0
RETRY_SPREAD_S = RETRY_MAX_S - RETRY_MIN_S


@dataclass(frozen=True, slots=True)
class Lease:
    """The figures of one item, all in seconds."""

    ttl_s: float | None  # the TTL of the session. None: the session has none
    lockout_s: float  # how long rivals surely wait after a holder vanished; for a slot, the prune delay
    margin_s: float  # what stays free between the end of on_lose and the moment when a rival may hold
    lose_time_s: float  # how long everything that must end after belief may take: hooks, and the run child
    room_s: float  # how long belief lasts after the newest contact
    interval_s: float  # how long a holder waits from one read to the next
    exchange_s: float  # how long one exchange with Consul may take; never more than 3 s
    # How long Consul keeps back the key or slot of a holder that vanished. 0: an exclusive fence does that.
    key_delay_s: float
    acquire_delay_s: float = 0.0  # how long this node, as a waiter, leaves a free key to other nodes
    busy_s: float = 0.0  # how much longer at most because of the other locks that it holds
    # How long a node that has acquired the key of such a holder waits at most before it acts. None: fence has
    # to succeed.
    wait_s: float | None = 0.0
    # How long others are to wait by the tenure record: ``lockout_s``, or longer by `outage`.
    asked_s: float = 0.0
    # How long belief lasts after the newest contact: ``room_s``, or longer by the part of ``asked_s`` that
    # tenure record and journal have already.
    belief_s: float = 0.0

    @property
    def leased_s(self) -> float:
        """How long belief is to count on others to wait by the tenure record. 0: as long as lock_delay."""
        return self.asked_s if self.asked_s > self.lockout_s else 0.0

    @property
    def outlasts(self) -> bool:
        """Whether belief outlasts the lock-delay now."""
        return self.belief_s > self.room_s

    @property
    def silence_s(self) -> float:
        """How long Consul may be silent without a loss.

        The newest contact may be one interval old when the silence begins, and the next read may come one
        interval after the end of the silence, because a holder repeats a read without an answer when the
        next one would have been due, if not before.
        """
        return self.room_s - 2 * self.interval_s

    @property
    def cut_off_s(self) -> float:
        """How long this node may be cut off from a Consul that keeps its leader, without a loss.

        Consul counts the TTL during the cut. The sum allows for a renewal that was due as the cut
        began, failed, and is repeated after the cut.
        """
        if self.ttl_s is None:
            return self.silence_s
        renews_s = self.ttl_s / TRIES_PER_TTL
        return min(self.silence_s, 2 * self.ttl_s - renews_s - self.exchange_s - RETRY_MAX_S)

    @property
    def failover_s(self) -> float | None:
        """How long after a crash of the holder a node with this lease acts at the latest.

        While Consul keeps its leader, it ends a session at most 2 x TTL after the last renewal. The
        lock-delay follows, then the time for which this node leaves the key to others, and then the wait
        where fence fails. None: no TTL ends the session, or nothing ends the wait.
        """
        if self.ttl_s is None or self.wait_s is None:
            return None
        return 2 * self.ttl_s + self.key_delay_s + self.acquire_delay_s + self.busy_s + self.wait_s

    @property
    def fresh_s(self) -> float:
        """How old the newest contact may be when on_acquire or run begins: one interval and one exchange."""
        return self.interval_s + self.exchange_s


def lose_terms(settings: ItemSettings) -> tuple[tuple[str, float], ...]:
    """Return the terms of ``lose_time`` as (name, seconds), in the order in which they are spent."""
    terms: list[tuple[str, float]] = []
    if settings.on_acquire:
        longest = max(hook.kill_after_s for hook in settings.on_acquire)
        terms.append(("on_acquire kill_after", longest))
    if settings.run is not None:
        terms.append(("run stop_timeout", settings.run.stop_timeout_s))
    for hook in (*settings.on_lose, *settings.on_lose_failure):
        terms.append((hook.name, hook.attempt_s))
    return tuple(terms)


def lease_of(settings: ItemSettings, lockout_s: float | None = None, leased_s: float = 0.0) -> Lease:
    """Return the lease that these settings allow.

    With ``accept_overlap``, a room below ROOM_MIN_S becomes the TTL. Without it, such a room is returned as
    it is, because the loader refuses such a file.

    lockout_s: how long rivals wait, if that is less than in the file. None: as long as in the file.
    leased_s: how long they wait by the tenure record, as far as belief counts by it.
    """
    lose_time_s = sum(seconds for _, seconds in lose_terms(settings))
    lease = _lease(settings, settings.lockout_s if lockout_s is None else lockout_s, lose_time_s)
    longer_s = leased_s - margin_of(leased_s) - lose_time_s
    return replace(lease, belief_s=longer_s) if longer_s > lease.belief_s else lease


def lockout_max_s(settings: ItemSettings) -> float:
    """Return the longest lock-delay, or for a semaphore the longest prune delay, that takes effect."""
    return PRUNE_DELAY_MAX_S if isinstance(settings, SemaphoreSettings) else LOCK_DELAY_MAX_S


def sufficient_lockout_s(settings: ItemSettings, room_min_s: float, silence_min_s: float = 0.0) -> int | None:
    """Return the shortest lockout, in whole seconds, that leaves this room and rides out this silence.

    None: even the longest is too short.
    """
    lose_time_s = sum(seconds for _, seconds in lose_terms(settings))
    for lockout_s in range(1, int(lockout_max_s(settings)) + 1):
        room_s = lockout_s - margin_of(lockout_s) - lose_time_s
        if room_s >= room_min_s and _lease(settings, lockout_s, lose_time_s).silence_s >= silence_min_s:
            return lockout_s
    return None


def margin_of(lock_delay_s: float) -> float:
    """Return the time kept free between the end of on_lose and the first moment at which a rival may hold."""
    return max(MARGIN_MIN_S, MARGIN_SHARE * lock_delay_s)


def _lease(settings: ItemSettings, lockout_s: float, lose_time_s: float) -> Lease:
    ttl_s = settings.session.ttl_s
    margin_s = margin_of(lockout_s)
    room_s = lockout_s - margin_s - lose_time_s
    if room_s < ROOM_MIN_S and settings.accept_overlap and ttl_s is not None:
        room_s = ttl_s
    fence, outage_s = settings.fence, settings.outage_s
    shortest = room_s if ttl_s is None else min(ttl_s, room_s)
    shortest = shortest if outage_s is None else min(shortest, OUTAGE_TTL_MAX_S)
    # Not as the file wishes where a semaphore's .lock has left less room than the file's check assumed.
    interval_s, wished_s = max(INTERVAL_MIN_S, shortest / TRIES_PER_TTL), settings.confirm_every_s
    if wished_s is not None and 2 * wished_s <= room_s:
        interval_s = wished_s
    asked_s = lockout_s
    if outage_s is not None:
        asked_s = max(asked_s, (outage_s + 2 * interval_s + lose_time_s) / (1 - MARGIN_SHARE))
    key_delay_s, wait_s = lockout_s, 0.0 if fence is None else asked_s
    if fence is not None and fence.exclusive:
        key_delay_s = EXCLUSIVE_DELAY_S
    return Lease(
        ttl_s=ttl_s,
        lockout_s=lockout_s,
        margin_s=margin_s,
        lose_time_s=lose_time_s,
        room_s=room_s,
        interval_s=interval_s,
        exchange_s=min(max(INTERVAL_MIN_S, interval_s), EXCHANGE_MAX_S),
        key_delay_s=key_delay_s,
        acquire_delay_s=settings.acquire_delay_s if isinstance(settings, ElectionSettings) else 0.0,
        wait_s=None if fence is not None and fence.required else wait_s,
        asked_s=asked_s,
        belief_s=room_s,
    )
