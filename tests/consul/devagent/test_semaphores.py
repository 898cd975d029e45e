"""Whole scenes of semaphores run with the embedded agent as they do with Consul, and the judge agrees."""

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import cast

import pytest

from tests.consul.semaphores import test_consul_lock, test_late_writes, test_record, test_slots
from tests.consul.semaphores.scene import SlotScene
from tests.support.consul import Agent, Client
from tests.support.staging import staged

Play = Callable[[SlotScene], None]

SCENES: tuple[Play, ...] = (
    test_slots.test_three_of_five_hold_and_a_freed_slot_goes_to_the_first_in_line,
    test_slots.test_the_hooks_of_a_semaphore_get_its_facts,
    partial(test_slots.test_a_holder_that_loses_by_an_operators_act_leaves_in_order, lost="contender key"),
    test_late_writes.test_a_late_acquire_of_a_slot_that_another_node_has_takes_nothing,
    test_consul_lock.test_consul_lock_waits_while_we_have_all_slots_and_is_next_at_once,
)
LONG: tuple[Play, ...] = (
    test_slots.test_all_nodes_leave_at_once_and_only_an_empty_record_is_left,
    partial(
        test_slots.test_the_slot_of_a_holder_that_vanished_is_free_after_the_prune_delay, behavior="delete"
    ),
    partial(test_slots.test_a_holder_that_loses_by_an_operators_act_leaves_in_order, lost="session"),
    test_record.test_a_deleted_record_is_a_loss_and_is_made_again_after_the_prune_delay,
    test_slots.test_pause_withdraws_the_contender_key_and_resume_stands_in_line_again,
    partial(
        test_consul_lock.test_never_more_than_three_hold_without_crashes_and_both_kinds_make_progress,
        times=10,
    ),
    test_consul_lock.test_our_waiters_are_next_after_consul_lock_has_had_all_slots,
)


@pytest.fixture
def scene(
    embedded: Client, tmp_path: Path, unique: str, request: pytest.FixtureRequest
) -> Iterator[SlotScene]:
    """Return supervisors on the embedded agent. No scene stops or freezes it, so a client is enough."""
    with staged(SlotScene(cast(Agent, embedded), tmp_path / "nodes", unique), request) as made:
        yield made


def title(play: object) -> str:
    """Return the name of the test that is played again, and its arguments."""
    if isinstance(play, partial):
        return "-".join([title(play.func), *map(str, play.keywords.values())])
    return str(getattr(play, "__name__", play)).removeprefix("test_")


@pytest.mark.parametrize(
    "play", [*SCENES, *(pytest.param(play, marks=pytest.mark.long) for play in LONG)], ids=title
)
def test_a_scene_with_the_embedded_agent_is_as_with_consul(play: Play, scene: SlotScene) -> None:
    play(scene)
