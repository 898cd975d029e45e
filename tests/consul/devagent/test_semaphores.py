"""Whole scenes of semaphores run with the embedded agent as they do with Consul, and the judge agrees."""

from collections.abc import Iterator
from pathlib import Path
from typing import cast

import pytest

from tests.consul.semaphores import test_consul_lock, test_slots
from tests.consul.semaphores.scene import SlotScene
from tests.support.consul import Agent, Client
from tests.support.staging import staged


@pytest.fixture
def scene(
    embedded: Client, tmp_path: Path, unique: str, request: pytest.FixtureRequest
) -> Iterator[SlotScene]:
    """Return supervisors on the embedded agent. No scene stops or freezes it, so a client is enough."""
    with staged(SlotScene(cast(Agent, embedded), tmp_path / "nodes", unique), request) as made:
        yield made


@pytest.mark.long
@pytest.mark.parametrize("beside", ["our own", "consul lock"])
def test_a_scene_with_the_embedded_agent_is_as_with_consul(beside: str, scene: SlotScene) -> None:
    if beside == "consul lock":
        test_consul_lock.test_consul_lock_waits_while_we_have_all_slots_and_is_next_at_once(scene)
    else:
        test_slots.test_three_of_five_hold_and_a_freed_slot_goes_to_the_first_in_line(scene)
