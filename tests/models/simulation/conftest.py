"""A simulation without faults, for the tests of its judges."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from tests.models.simulation.machine import Machine
from tests.models.simulation.scenario import scenario_of
from tests.models.simulation.simulation import Simulation


@pytest.fixture
def simulation(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Simulation]:
    """Return the simulation of the module's SEED, without faults."""
    seed = request.module.SEED
    calm = Simulation(seed, tmp_path, replace(scenario_of(seed), faults=()))
    yield calm
    for machine in calm.machines:
        machine.power_off()


@pytest.fixture
def machine(simulation: Simulation) -> Machine:
    return simulation.machines[0]
