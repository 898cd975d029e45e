"""A seed -> how many nodes, with which settings and clocks, and what goes wrong when.

The plan is made before anything runs, so that a change of the supervisor does not change it. Whom a
fault meets is decided when it comes: often the holder of that moment.
"""

import random
from dataclasses import dataclass, replace

from supervisor.core.lease import MARGIN_MIN_S, MARGIN_SHARE, lose_terms
from supervisor.core.settings import CandidateCheck, Command, ElectionSettings, Hook, Run, SessionSettings

ELECTION = "app"
KEY = "service/app/leader"
DURATION_S = 600.0
CALM_FROM_S = 505.0  # no fault from here on: what must come right has the time to
FIRST_FAULT_S = 12.0
FAULTS_MIN, FAULTS_MAX = 16, 24
KINDS_MIN = 4
CLOCK_RATE_ERROR = 0.01  # a hundred times what crystals do, a fifth of the margin
ROOM_S = (3.0, 11.0)
TTL_S = (5.0, 11.0)

# How often each kind is drawn. The words are those of the trace and of the totals.
KINDS = {
    "requests lost": 6,
    "answers lost": 6,
    "cut off": 10,
    "lossy": 4,
    "delays": 4,
    "late writes": 5,
    "duplicates": 3,
    "slow agent": 4,
    "silent agent": 5,
    "agent restart": 5,
    "agent leaves": 2,
    "leader change": 5,
    "no leader": 5,
    "server restart": 5,
    "crash": 7,
    "crash at an action": 16,
    "freeze": 8,
    "machine paused": 4,
    "another file": 4,
    "stop": 4,
    "reboot": 3,
    "slow hooks": 5,
    "failing hooks": 7,
    "run exits": 3,
    "unfit": 3,
    "disk full": 5,
    "session destroyed": 4,
    "key released": 1,
    "key deleted": 1,
    "paused": 2,
}


@dataclass(frozen=True)
class Fault:
    """``dice`` seeds whatever else is to be decided about it. ``at_holder``: it is meant for the
    holder, if there is one."""

    at: float
    kind: str
    at_holder: bool
    dice: int


@dataclass(frozen=True)
class Scenario:
    """Everything that the seed says. ``settings`` and ``rates`` by node; ``rate``: seconds of its
    clock in a second of the simulation."""

    seed: int
    nodes: tuple[str, ...]
    settings: tuple[ElectionSettings, ...]
    rates: tuple[float, ...]
    faults: tuple[Fault, ...]


def scenario_of(seed: int) -> Scenario:
    """The same for the same seed, for ever and everywhere."""
    dice = random.Random(f"scenario {seed}")
    nodes = tuple("abcde"[: dice.choices((3, 4, 5), (6, 2, 1))[0]])
    settings = settings_of(dice)
    rates = tuple(1 + dice.uniform(-CLOCK_RATE_ERROR, CLOCK_RATE_ERROR) for _ in nodes)
    return Scenario(
        seed,
        nodes,
        tuple(replace(settings, value=node.encode()) for node in nodes),
        rates,
        _faults(dice, has_ttl=settings.session.ttl_s is not None),
    )


def _faults(dice: random.Random, *, has_ttl: bool) -> tuple[Fault, ...]:
    """Without a TTL nothing but an operator would end the session of another boot."""
    kinds = [kind for kind in KINDS if has_ttl or kind != "reboot"]
    weights = [KINDS[kind] for kind in kinds]
    drawn: list[str] = []
    while len(set(drawn)) < KINDS_MIN:
        drawn = dice.choices(kinds, weights, k=dice.randint(FAULTS_MIN, FAULTS_MAX))
    times = sorted(dice.uniform(FIRST_FAULT_S, CALM_FROM_S - 5) for _ in drawn)
    return tuple(
        Fault(at, kind, dice.random() < 0.75, dice.getrandbits(32))
        for at, kind in zip(times, drawn, strict=True)
    )


# --- settings ------------------------------------------------------------------------------------


def settings_of(dice: random.Random) -> ElectionSettings:
    """A file's election in which on_lose fits into the lock-delay, as the loader asks for."""
    has_run = dice.random() < 0.35
    has_hooks = not has_run or dice.random() < 0.7
    settings = ElectionSettings(
        name=ELECTION,
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
    lose_time_s = sum(seconds for _, seconds in lose_terms(settings))
    needed_s = lose_time_s + dice.uniform(*ROOM_S)
    lock_delay_s = max(needed_s + MARGIN_MIN_S, needed_s / (1 - MARGIN_SHARE))
    session = replace(settings.session, lock_delay_s=round(lock_delay_s, 2))
    return replace(settings, session=session)


def another_file(settings: ElectionSettings, dice: random.Random) -> ElectionSettings:
    """As many hooks of each kind, with other times; half the time another session, too."""
    changed = replace(
        settings,
        on_acquire=tuple(_retimed(hook, dice) for hook in settings.on_acquire),
        on_lose=tuple(_retimed(hook, dice) for hook in settings.on_lose),
        on_adopt=dice.choice(("none", "acquire")),
        rejoin_delay_s=dice.uniform(0.5, 2.0),
        candidate_check=_check(dice) if dice.random() < 0.25 else None,
    )
    lose_time_s = sum(seconds for _, seconds in lose_terms(changed))
    lock_delay_s, room_s = settings.session.lock_delay_s, dice.uniform(*ROOM_S)
    fits = lock_delay_s - max(MARGIN_MIN_S, MARGIN_SHARE * lock_delay_s) - lose_time_s >= ROOM_S[0]
    if fits and dice.random() < 0.5:
        return changed
    needed_s = lose_time_s + room_s
    lock_delay_s = round(max(needed_s + MARGIN_MIN_S, needed_s / (1 - MARGIN_SHARE)), 2)
    return replace(changed, session=replace(settings.session, lock_delay_s=lock_delay_s))


def _retimed(hook: Hook, dice: random.Random) -> Hook:
    return replace(hook, timeout_s=hook.timeout_s * dice.uniform(0.7, 1.3), retries=dice.choice((0, 1, 2)))


def _session(dice: random.Random) -> SessionSettings:
    return SessionSettings(
        name=f"consul-supervisor:{ELECTION}",
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
