"""A seed -> how many nodes, with which settings and clocks, and the faults with their times.

The plan is made before anything runs, so that a change of the supervisor does not change it. The target of a
fault is chosen when the fault comes: often the holder of that moment.
"""

import random
from dataclasses import dataclass, replace

from supervisor.core.settings import ElectionSettings, ItemSettings, SemaphoreSettings
from tests.models.simulation.files import election_of, of_node, semaphore_of, with_fence
from tests.models.simulation.watchdog import WATCHDOG

DURATION_S = 600.0
CALM_FROM_S = 505.0  # no fault comes after this time, so that everything can recover
FIRST_FAULT_S = 12.0
FAULTS_MIN, FAULTS_MAX = 16, 24
KINDS_MIN = 4
CLOCK_RATE_ERROR = 0.01  # a hundred times the error of crystals, and a fifth of the margin
SEMAPHORES = 0.4  # the share of worlds with a semaphore
MORE_PRUNE_DELAY_S = (0.0, 8.0)

# How often each kind is drawn. The words appear in the trace and in the totals.
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
    "altered sessions": 2,
    "disk full": 5,
    "session destroyed": 4,
}
KINDS_OF_ELECTIONS = {**KINDS, "key released": 1, "key deleted": 1, "paused": 2, "ordered": 2}
KINDS_OF_SEMAPHORES = {
    **KINDS,
    "limit changed": 5,
    "slot removed": 1,
    "record deleted": 2,
    "contender deleted": 2,
    "paused": 2,
    "ordered": 2,
}


GUARDED = 0.5  # the share of seeds with a watchdog, where its timeout fits
GUARD_MIN_S = 9.0
FENCED = 0.5  # the share of elections with a fence


@dataclass(frozen=True)
class Fault:
    """A planned fault.

    at_holder: whether it is meant for the holder, if there is one.
    dice: the seed of everything else about it.
    """

    at: float
    kind: str
    at_holder: bool
    dice: int


@dataclass(frozen=True)
class Scenario:
    """Everything that follows from the seed.

    settings: of each node.
    rates: of each node, the seconds of its clock in a second of the simulation.
    """

    seed: int
    nodes: tuple[str, ...]
    settings: tuple[ItemSettings, ...]
    rates: tuple[float, ...]
    faults: tuple[Fault, ...]

    @property
    def fenced(self) -> bool:
        """Whether every tenure has a record in Consul."""
        return isinstance(self.settings[0], ElectionSettings) and self.settings[0].fence is not None

    @property
    def kind(self) -> str:
        return self.settings[0].kind


def scenario_of(seed: int) -> Scenario:
    """Return the scenario of a seed, which never changes."""
    semaphore = random.Random(f"kind {seed}").random() < SEMAPHORES
    dice = random.Random(f"scenario {seed}")
    weights = (2, 3, 2) if semaphore else (6, 2, 1)
    nodes = tuple("abcde"[: dice.choices((3, 4, 5), weights)[0]])
    settings: ItemSettings = semaphore_of(dice) if semaphore else election_of(dice)
    guarded = random.Random(f"watchdog {seed}").random() < GUARDED
    if guarded and settings.session.ttl_s is not None and settings.lockout_s >= GUARD_MIN_S:
        settings = replace(settings, watchdog=WATCHDOG)
    fence_dice = random.Random(f"fence {seed}")
    if isinstance(settings, ElectionSettings) and fence_dice.random() < FENCED:
        settings = with_fence(settings, fence_dice)
    rates = tuple(1 + dice.uniform(-CLOCK_RATE_ERROR, CLOCK_RATE_ERROR) for _ in nodes)
    kinds = KINDS_OF_SEMAPHORES if semaphore else KINDS_OF_ELECTIONS
    faults = _faults(dice, kinds, has_ttl=settings.session.ttl_s is not None)
    return Scenario(seed, nodes, _files(settings, nodes, dice), rates, faults)


def _files(settings: ItemSettings, nodes: tuple[str, ...], dice: random.Random) -> tuple[ItemSettings, ...]:
    """Return a file for each node; those of a semaphore may differ in their prune delay."""
    if not isinstance(settings, SemaphoreSettings) or dice.random() < 0.6:
        return tuple(of_node(settings, node) for node in nodes)
    delays_s = (round(settings.prune_delay_s + dice.uniform(*MORE_PRUNE_DELAY_S), 2) for _ in nodes)
    differing = (replace(settings, prune_delay_s=delay_s) for delay_s in delays_s)
    return tuple(of_node(each, node) for each, node in zip(differing, nodes, strict=True))


def _faults(dice: random.Random, weight_of: dict[str, int], *, has_ttl: bool) -> tuple[Fault, ...]:
    """Plan the faults.

    There is no reboot without a TTL, because only an operator would end the session of another boot.
    """
    kinds = [kind for kind in weight_of if has_ttl or kind != "reboot"]
    weights = [weight_of[kind] for kind in kinds]
    drawn: list[str] = []
    while len(set(drawn)) < KINDS_MIN:
        drawn = dice.choices(kinds, weights, k=dice.randint(FAULTS_MIN, FAULTS_MAX))
    times = sorted(dice.uniform(FIRST_FAULT_S, CALM_FROM_S - 5) for _ in drawn)
    return tuple(
        Fault(at, kind, dice.random() < 0.75, dice.getrandbits(32))
        for at, kind in zip(times, drawn, strict=True)
    )
