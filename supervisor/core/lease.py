"""The safety arithmetic: how long belief in leadership may outlive the last news of it.

``contact`` is the send time of the newest consistent read that showed our session on the key.
However the session ends, Consul lets nobody else take the key before
``rival = contact + lock_delay``. What must have ended by then is subtracted; what is left is
the *room* in which silence is ridden out:

    contact                                    contact + room               rival
       |------------- silence is ridden out -------------|-- lose_time --|-margin-|

Pure functions of the settings. This module must never look at a clock or at Consul's TTL to
decide belief: only ``lock_delay`` is promised to us (Consul documents a TTL as a lower bound).
"""

from dataclasses import dataclass

from supervisor.core.settings import ItemSettings, SemaphoreSettings

MARGIN_MIN_S = 0.5  # scheduling, a slow fork, the kernel reaping a killed child
MARGIN_SHARE = 0.05  # clocks whose rates differ, many times what crystals do
ROOM_MIN_S = 2.0  # below it a lost packet or two would be a failover
SILENCE_MIN_S = 14.5  # a change of Consul's leader took 14.2 s with its default settings
LOCK_DELAY_MAX_S = 60.0  # Consul applies no more (structs.MaxLockDelay)
PRUNE_DELAY_MAX_S = 3600.0  # more is not waited for, whoever asks for it: that is an operator's affair
INTERVAL_MIN_S = 1.0
EXCHANGE_MAX_S = 3.0
RETRY_MIN_S = 0.5  # after no answer: soon enough for the lease, slow enough for a sick agent
RETRY_MAX_S = 1.0
RETRY_SPREAD_S = RETRY_MAX_S - RETRY_MIN_S


@dataclass(frozen=True, slots=True)
class Lease:
    """The figures of one item, all in seconds; ``ttl_s`` is None for a session without TTL.

    ``lock_delay_s``: for how long others surely wait; of a slot that is the prune delay.
    """

    ttl_s: float | None
    lock_delay_s: float
    margin_s: float
    lose_time_s: float
    room_s: float
    interval_s: float
    exchange_s: float

    @property
    def silence_s(self) -> float:
        """The silence of Consul that is surely ridden out: two reads may just have failed."""
        return self.room_s - 2 * self.interval_s

    @property
    def cut_off_s(self) -> float:
        """What is surely ridden out while Consul keeps its leader, which goes on counting the session's TTL
        whoever is silent: a renewal falls due, fails, and is repeated after the cut."""
        if self.ttl_s is None:
            return self.silence_s
        return min(self.silence_s, 2 * self.ttl_s - self.ttl_s / 3 - self.exchange_s - RETRY_MAX_S)

    @property
    def failover_s(self) -> float | None:
        """Crash of the holder to a free key, while Consul keeps its leader; None: no TTL ends it.

        Consul ends a session 2 x TTL after its last renewal, then the lock-delay runs.
        """
        return None if self.ttl_s is None else 2 * self.ttl_s + self.lock_delay_s

    @property
    def fresh_s(self) -> float:
        """News older than this begins nothing: one interval and one exchange."""
        return self.interval_s + self.exchange_s


def lose_terms(settings: ItemSettings) -> tuple[tuple[str, float], ...]:
    """The terms of ``lose_time`` as (what, seconds), in the order in which they are spent."""
    terms: list[tuple[str, float]] = []
    if settings.on_acquire:
        longest = max(hook.kill_after_s for hook in settings.on_acquire)
        terms.append(("on_acquire kill_after", longest))
    if settings.run is not None:
        terms.append(("run stop_timeout", settings.run.stop_timeout_s))
    for hook in (*settings.on_lose, *settings.on_lose_failure):
        terms.append((hook.name, hook.attempt_s))
    return tuple(terms)


def lease_of(settings: ItemSettings, guard_s: float | None = None) -> Lease:
    """The lease that these settings allow; ``guard_s``: where others wait less than our file says.

    With ``accept_overlap`` and no room of at least ROOM_MIN_S, the room is the TTL. Otherwise a
    room below ROOM_MIN_S is returned as it is: to refuse it is the loader's part.
    """
    lose_time_s = sum(seconds for _, seconds in lose_terms(settings))
    return _lease(settings, settings.guard_s if guard_s is None else guard_s, lose_time_s)


def guard_max_s(settings: ItemSettings) -> float:
    """The longest lock-delay, or prune delay, that there is."""
    return PRUNE_DELAY_MAX_S if isinstance(settings, SemaphoreSettings) else LOCK_DELAY_MAX_S


def sufficient_guard_s(settings: ItemSettings, room_min_s: float, silence_min_s: float = 0.0) -> int | None:
    """The smallest whole lock-delay, or prune delay, that leaves so much room and rides out so much
    silence; None when the longest does not."""
    lose_time_s = sum(seconds for _, seconds in lose_terms(settings))
    for guard_s in range(1, int(guard_max_s(settings)) + 1):
        room_s = guard_s - margin_of(guard_s) - lose_time_s
        if room_s >= room_min_s and _lease(settings, guard_s, lose_time_s).silence_s >= silence_min_s:
            return guard_s
    return None


def margin_of(lock_delay_s: float) -> float:
    """What is kept free between the end of on_lose and the first moment of a rival."""
    return max(MARGIN_MIN_S, MARGIN_SHARE * lock_delay_s)


def _lease(settings: ItemSettings, lock_delay_s: float, lose_time_s: float) -> Lease:
    ttl_s = settings.session.ttl_s
    margin_s = margin_of(lock_delay_s)
    room_s = lock_delay_s - margin_s - lose_time_s
    if room_s < ROOM_MIN_S and settings.accept_overlap and ttl_s is not None:
        room_s = ttl_s
    shortest = room_s if ttl_s is None else min(ttl_s, room_s)
    interval_s = max(INTERVAL_MIN_S, shortest / 3)
    return Lease(
        ttl_s=ttl_s,
        lock_delay_s=lock_delay_s,
        margin_s=margin_s,
        lose_time_s=lose_time_s,
        room_s=room_s,
        interval_s=interval_s,
        exchange_s=min(interval_s, EXCHANGE_MAX_S),
    )
