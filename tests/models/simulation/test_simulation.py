"""Four seeds, sixty in `make test-long`; more are run by ``make simulate SEEDS=1-10000``."""

from collections import Counter

import pytest

from tests.models.simulation.scenario import (
    FAULTS_MIN,
    KINDS_MIN,
    KINDS_OF_ELECTIONS,
    KINDS_OF_SEMAPHORES,
    scenario_of,
)
from tests.models.simulation.totals import result_of

SEEDS = range(1, 61)
FEW = range(11, 15)  # these four have fail-overs and adoptions; ten others may lack the rarer of them
TENS = [SEEDS[first : first + 10] for first in range(0, len(SEEDS), 10)]


@pytest.mark.parametrize("seeds", [FEW, *(pytest.param(seeds, marks=pytest.mark.long) for seeds in TENS)])
def test_a_simulated_cluster_keeps_every_promise(seeds: range) -> None:
    counts: Counter[str] = Counter()
    for seed in seeds:
        result = result_of(seed)
        assert not result.why, f"{result.tail}\nseed {seed}: {result.why}"
        counts += result.counts
    assert counts["failovers"] and (counts["adoptions"] or seeds is not FEW)


@pytest.mark.long
def test_a_seed_replays_exactly() -> None:
    first, second = result_of(8, digest=True), result_of(8, digest=True)
    assert first.digest == second.digest and first.counts == second.counts
    assert first.digest != result_of(7, digest=True).digest


def test_a_seed_has_many_faults_and_all_kinds_occur() -> None:
    scenarios = [scenario_of(seed) for seed in SEEDS]
    for kind, of_kind in (("election", KINDS_OF_ELECTIONS), ("semaphore", KINDS_OF_SEMAPHORES)):
        some = [scenario for scenario in scenarios if scenario.kind == kind]
        assert len(some) >= len(SEEDS) / 3
        assert {fault.kind for scenario in some for fault in scenario.faults} == set(of_kind)
    for scenario in scenarios:
        kinds = {fault.kind for fault in scenario.faults}
        assert len(scenario.faults) >= FAULTS_MIN >= 15 and len(kinds) >= KINDS_MIN >= 4
        assert 3 <= len(scenario.nodes) <= 5
