"""The content of a node's file: an election or a semaphore, drawn from dice, and the file that follows it.

Every on_lose fits into the lock-delay or prune delay, as the loader requires. This module knows neither
faults nor the time at which a file is read.
"""

import random
from dataclasses import fields, replace
from typing import Any, Literal

from supervisor.config.formats import slot_record
from supervisor.core.lease import MARGIN_MIN_S, MARGIN_SHARE, lose_terms
from supervisor.core.settings import (
    LOCK_SUFFIX,
    CandidateCheck,
    Command,
    ElectionSettings,
    Fence,
    Hook,
    ItemSettings,
    Run,
    SemaphoreSettings,
    SessionSettings,
)

ITEM = "app"
KEY = "service/app/leader"
PREFIX = "service/app"
LIMIT_MAX = 3
ROOM_S = (3.0, 11.0)
TTL_S = (5.0, 11.0)
CONFIRM_MIN_S = 0.5


def election_of(dice: random.Random) -> ElectionSettings:
    """Return an election without its value."""
    has_run = dice.random() < 0.35
    has_hooks = not has_run or dice.random() < 0.7
    settings = ElectionSettings(
        name=ITEM,
        key=KEY,
        value=b"",
        session=_session(dice),
        on_acquire=_hooks(dice, "on_acquire", (1.0, 3.0)) if has_hooks else (),
        on_lose=_hooks(dice, "on_lose", (0.5, 1.5)) if has_hooks else (),
        on_change=_hooks(dice, "on_change", (1.0, 2.0)) if dice.random() < 0.2 else (),
        on_lose_failure=_last_resort(dice) if has_hooks else (),
        run=Run(_command(dice), dice.uniform(0.5, 1.5)) if has_run else None,
        candidate_check=_check(dice) if dice.random() < 0.25 else None,
        acquire_failure=dice.choice(("release", "release", "keep")),
        rejoin_delay_s=dice.uniform(0.5, 2.0),
        on_adopt=dice.choice(("none", "none", "acquire")),
    )
    room_s = dice.uniform(*ROOM_S)
    session = replace(settings.session, lock_delay_s=_lockout_s(settings, room_s))
    acquire_delay_s = dice.uniform(0.5, 3.0) if dice.random() < 0.25 else 0.0
    confirm_every_s = dice.uniform(CONFIRM_MIN_S, room_s / 2) if dice.random() < 0.5 else None
    settings = replace(settings, session=session, confirm_every_s=confirm_every_s)
    return replace(settings, acquire_delay_s=acquire_delay_s)


def with_fence(settings: ElectionSettings, dice: random.Random) -> ElectionSettings:
    """Return the election with a fence, whose time limit may be shorter than its command takes."""
    fence = Fence(
        _hook(dice, "fence", (1.5, 5.0)), after_s=dice.uniform(0.0, 3.0), exclusive=dice.random() < 0.5
    )
    return replace(settings, fence=fence)


def semaphore_of(dice: random.Random) -> SemaphoreSettings:
    """Return a semaphore without its value: like an election whose lock-delay is the prune delay."""
    election = election_of(dice)
    common: dict[str, Any] = {field.name: getattr(election, field.name) for field in fields(ItemSettings)}
    behavior: Literal["release", "delete"] = "delete" if dice.random() < 0.8 else "release"
    common["key"] = PREFIX + LOCK_SUFFIX
    common["session"] = replace(election.session, lock_delay_s=_lock_delay_s(dice), behavior=behavior)
    limit = dice.randint(1, LIMIT_MAX)
    return SemaphoreSettings(**common, limit=limit, prune_delay_s=election.session.lock_delay_s)


def of_node(settings: ItemSettings, node: str) -> ItemSettings:
    """Return the settings of this node's file, whose value names the node."""
    if isinstance(settings, SemaphoreSettings):
        return replace(settings, value=slot_record.body({"Node": node}, settings.prune_delay_s))
    settings = replace(settings, value=node.encode())
    if isinstance(settings, ElectionSettings) and settings.fence is not None:
        settings = replace(settings, fence=replace(settings.fence, target=node.partition("-")[0]))
    return settings


def another_file(settings: ItemSettings, node: str, dice: random.Random) -> ItemSettings:
    """Return settings with equally many hooks and other times.

    Half the time the lock-delay or prune delay is another one as well.
    """
    changed = replace(
        settings,
        on_acquire=tuple(_retimed(hook, dice) for hook in settings.on_acquire),
        on_lose=tuple(_retimed(hook, dice) for hook in settings.on_lose),
        on_adopt=dice.choice(("none", "acquire")),
        rejoin_delay_s=dice.uniform(0.5, 2.0),
        candidate_check=_check(dice) if dice.random() < 0.25 else None,
    )
    lockout_s = _lockout_s(changed, dice.uniform(*ROOM_S))
    if not _fits(changed) or dice.random() >= 0.5:
        changed = _guarded(changed, lockout_s)
    if isinstance(changed, SemaphoreSettings):
        changed = _with_another_limit(changed, dice)
    return of_node(changed, f"{node}-{dice.randrange(3)}" if dice.random() < 0.5 else node)


def _with_another_limit(settings: SemaphoreSettings, dice: random.Random) -> SemaphoreSettings:
    """Return the settings with another limit.

    Some of them have other session settings as well, so that nothing of the old session can go on.
    """
    settings = replace(settings, limit=dice.randint(1, LIMIT_MAX))
    if dice.random() < 0.8:
        return settings
    return replace(settings, session=replace(settings.session, lock_delay_s=_lock_delay_s(dice)))


def _guarded(settings: ItemSettings, lockout_s: float) -> ItemSettings:
    if isinstance(settings, SemaphoreSettings):
        return replace(settings, prune_delay_s=lockout_s)
    return replace(settings, session=replace(settings.session, lock_delay_s=lockout_s))


def _lockout_s(settings: ItemSettings, room_s: float) -> float:
    """Return the lock-delay or prune delay that leaves this room."""
    needed_s = sum(seconds for _, seconds in lose_terms(settings)) + room_s
    return round(max(needed_s + MARGIN_MIN_S, needed_s / (1 - MARGIN_SHARE)), 2)


def _fits(settings: ItemSettings) -> bool:
    """Return whether on_lose still fits."""
    lose_time_s = sum(seconds for _, seconds in lose_terms(settings))
    margin_s = max(MARGIN_MIN_S, MARGIN_SHARE * settings.lockout_s)
    return settings.lockout_s - margin_s - lose_time_s >= ROOM_S[0]


def _lock_delay_s(dice: random.Random) -> float:
    """Return a lock-delay for a semaphore's session.

    Any value will do, because no other session wants its contender key.
    """
    return round(dice.uniform(0.0, 20.0), 2)


def _retimed(hook: Hook, dice: random.Random) -> Hook:
    return replace(hook, timeout_s=hook.timeout_s * dice.uniform(0.7, 1.3), retries=dice.choice((0, 1, 2)))


def _session(dice: random.Random) -> SessionSettings:
    return SessionSettings(
        name=f"consul-supervisor:{ITEM}",
        ttl_s=None if dice.random() < 0.05 else round(dice.uniform(*TTL_S), 2),
        behavior=dice.choice(("release", "release", "delete")),
        node_checks=("serfHealth",) if dice.random() < 0.2 else (),
    )


def _hooks(dice: random.Random, name: str, timeout_s: tuple[float, float]) -> tuple[Hook, ...]:
    return tuple(_hook(dice, f"{name}[{index}]", timeout_s) for index in range(dice.choice((1, 1, 2))))


def _last_resort(dice: random.Random) -> tuple[Hook, ...]:
    return (_hook(dice, "on_lose_failure[0]", (0.5, 1.0)),) if dice.random() < 0.35 else ()


def _hook(dice: random.Random, name: str, timeout_s: tuple[float, float]) -> Hook:
    return Hook(
        name,
        _command(dice),
        timeout_s=dice.uniform(*timeout_s),
        retries=dice.choice((0, 0, 1, 2)),
        retry_delay_s=dice.uniform(0.2, 0.6),
    )


def _command(dice: random.Random) -> Command:
    return Command(("/bin/true",), kill_after_s=dice.uniform(0.2, 0.6))


def _check(dice: random.Random) -> CandidateCheck:
    hook = Hook("candidate_check", _command(dice), timeout_s=1.0)
    return CandidateCheck(hook, dice.uniform(3.0, 6.0), rise=dice.randint(1, 2), fall=dice.randint(1, 3))
