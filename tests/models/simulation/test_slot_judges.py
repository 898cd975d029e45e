"""The judges of semaphores are tested, and so is the witness on which they rely."""

from dataclasses import replace
from pathlib import Path

import pytest

from supervisor.config.formats import slot_record as rosters
from supervisor.core.actions import HookContext, Reason, Role, StartHook
from supervisor.core.requests import SlotRecord, TakeSlot
from supervisor.core.settings import SemaphoreSettings
from supervisor.rehearsal.devagent.kv import Entry
from supervisor.rehearsal.devagent.sessions import DELETE, StoredSession
from supervisor.rehearsal.devagent.store import Store
from supervisor.rehearsal.devagent.txn import write_alone
from tests.models.simulation.files import PREFIX
from tests.models.simulation.holders import LOCK, OfSlots, Pruning, Taking
from tests.models.simulation.judges import Broken, LoseForEveryAcquire
from tests.models.simulation.lasting import EverySlotAtTheEnd
from tests.models.simulation.machine import Machine
from tests.models.simulation.scenario import DURATION_S, scenario_of
from tests.models.simulation.simulation import Simulation
from tests.models.simulation.slot_judges import LimitKept, PrunesLate, TokensOfSlots

SEED = 4  # its semaphore has three slots for four nodes, on_acquire and on_lose


class Witnessed:
    """A store of one node, and the witness of its slots."""

    def __init__(self) -> None:
        self.store = Store("n", 1)
        self.slots = OfSlots(self.store, lambda words: None)

    def operate(self, verb: str, entry: Entry, now: float) -> bool:
        return write_alone(self.store, (verb, entry), now)

    def enroll(self, now: float) -> str:
        """Enroll a contender with a prune delay of 10 s."""
        session = self.store.create_session(StoredSession("", "n", behavior=DELETE, lock_delay_ns=0), now).id
        value = rosters.body({}, 10.0)
        assert self.operate("lock", Entry(f"{PREFIX}/{session}", value, session=session), now)
        self.slots.look(now)
        return session

    def write(self, now: float, *holders: str, limit: int = 3, look: bool = True) -> int:
        self.operate("set", Entry(LOCK, rosters.encoded(SlotRecord(limit, holders))), now)
        if look:
            self.slots.look(now)
        return self.slots.index

    def ends(self, session: str, now: float) -> None:
        self.store.destroy_session(session, now)
        self.slots.look(now)


def acquires(machine: Machine, session: str, token: int) -> StartHook:
    context = HookContext(
        event="acquire",
        name="app",
        key=LOCK,
        reason=Reason.ACQUIRED,
        transition=f"{session}-acquire",
        session=session,
        fencing_token=token,
    )
    return StartHook(machine.settings.on_acquire[0], 1, context)


# --- the witness -----------------------------------------------------------------------------------


def test_a_new_holder_of_a_slot_is_witnessed() -> None:
    seen = Witnessed()
    first, second = seen.enroll(0), seen.enroll(0)
    at_first, at_second = seen.write(1, first), seen.write(2, first, second, limit=2)
    assert seen.slots.takings == [Taking(first, at_first, 3, 1), Taking(second, at_second, 2, 2)]
    assert seen.slots.holders == (first, second) and seen.slots.last_index[first] == at_second


def test_a_slot_that_was_given_back_is_not_pruned_and_one_of_a_vanished_holder_is() -> None:
    seen = Witnessed()
    gone, left, comes = seen.enroll(0), seen.enroll(0), seen.enroll(0)
    seen.write(1, gone, left)
    seen.write(2, gone)
    seen.ends(gone, 3)
    seen.write(10, comes)
    assert seen.slots.prunings == [Pruning(gone, 7, 10.0)] and not seen.slots.unguarded


def test_a_prune_of_a_living_contender_is_always_too_early() -> None:
    seen = Witnessed()
    lives, comes = seen.enroll(0), seen.enroll(0)
    seen.write(1, lives)
    seen.write(100, comes)
    assert seen.slots.prunings == [Pruning(lives, 0, 10.0)]


def test_a_record_that_is_made_again_prunes_the_holders_that_it_leaves_out() -> None:
    seen = Witnessed()
    lives, vanishes, comes = (seen.enroll(0) for _ in range(3))
    seen.write(1, lives, vanishes)
    seen.operate("delete", Entry(LOCK), 2)
    seen.slots.look(2)
    seen.ends(vanishes, 3)
    seen.write(9, comes)
    assert seen.slots.prunings == [Pruning(lives, 7, 10.0)]
    assert seen.slots.unguarded == {vanishes}, "nothing told of it any more"


def test_unseen_changes_are_not_judged_too_strictly() -> None:
    seen = Witnessed()
    leaves, comes = seen.enroll(0), seen.enroll(0)
    before = seen.write(1, leaves)
    seen.write(2, look=False)
    after = seen.write(2, comes, look=False)
    seen.slots.look(2, several=True)
    assert not seen.slots.prunings and after > before + 1
    assert seen.slots.takings[-1] == Taking(comes, before + 1, 3, 1)


# --- the judges ------------------------------------------------------------------------------------


@pytest.mark.long
def test_more_acting_nodes_than_the_limit_are_reported(tmp_path: Path) -> None:
    """With an allowed overlap and no prune delay, too many nodes act sooner or later."""
    scenario = scenario_of(SEED)
    settings = tuple(
        replace(
            each,
            accept_overlap=True,
            watchdog=None,
            limit=2,
            prune_delay_s=0.0,
            value=rosters.body({}, 0.0),
            session=replace(each.session, ttl_s=30.0),
        )
        for each in scenario.settings
        if isinstance(each, SemaphoreSettings)
    )
    with pytest.raises(Broken, match="act as holders at once, the limit is 2"):
        for seed in range(20):
            faults = scenario_of(seed).faults
            Simulation(seed, tmp_path / str(seed), replace(scenario, settings=settings, faults=faults)).run()


@pytest.mark.parametrize(("limit", "of_file"), [(1, 3), (3, 1)])
def test_a_holder_of_a_missing_slot_is_reported(machine: Machine, limit: int, of_file: int) -> None:
    slots = Witnessed().slots
    judge = LimitKept((), slots)
    assert isinstance(machine.settings, SemaphoreSettings)
    machine.settings = replace(machine.settings, limit=of_file)
    judge.did(machine, TakeSlot("app", 0.0, 1.0, PREFIX, "s1", SlotRecord(3, ("s0", "s1")), 7))
    slots.takings.append(Taking("s1", 8, limit, 2))
    with pytest.raises(Broken, match="takes slot 2 of 1"):
        judge.look(machine)


def test_a_prune_that_comes_too_early_is_reported(machine: Machine) -> None:
    slots = Witnessed().slots
    judge = PrunesLate(slots)
    slots.prunings.append(Pruning("s1", 9.95, 10.0))
    judge.look(machine)
    slots.prunings.append(Pruning("s2", 9.5, 10.0))
    with pytest.raises(Broken, match="the slot of s2 is taken after 9"):
        judge.look(machine)


@pytest.mark.parametrize(("session", "token"), [("s1", 8), ("s2", 7), ("s2", 12), ("s3", 9)])
def test_a_token_that_the_record_never_had_or_that_changes_is_reported(
    machine: Machine, session: str, token: int
) -> None:
    slots = Witnessed().slots
    slots.takings += [Taking("s1", 7, 3, 1), Taking("s2", 9, 3, 2)]
    slots.last_index |= {"s1": 11, "s2": 11}
    judge = TokensOfSlots(slots)
    first = machine.children.spawn(acquires(machine, "s1", 7), slow=False, failing=False)
    judge.spawned(machine, first)
    other = machine.children.spawn(acquires(machine, session, token), slow=False, failing=False)
    with pytest.raises(Broken, match="token"):
        judge.spawned(machine, other)


@pytest.mark.long
def test_an_end_with_an_idle_slot_is_reported(simulation: Simulation) -> None:
    simulation.schedule.run(DURATION_S)
    slots = simulation.cluster.slots
    assert slots is not None
    judge = EverySlotAtTheEnd(simulation.machines, LoseForEveryAcquire(), slots)
    judge.conclude()
    roles = [each.supervisor.contender.role if each.supervisor else None for each in simulation.machines]
    assert roles.count(Role.HOLDING) == 3
    simulation.machines[roles.index(Role.HOLDING)].crash("for the test", restart_s=DURATION_S)
    with pytest.raises(Broken, match="waits although there are 3 slots"):
        judge.conclude()


@pytest.mark.long
def test_an_end_with_a_holder_without_a_slot_is_reported(simulation: Simulation) -> None:
    simulation.schedule.run(DURATION_S)
    judge = EverySlotAtTheEnd(simulation.machines, LoseForEveryAcquire(), Witnessed().slots)
    with pytest.raises(Broken, match="holds without a slot"):
        judge.conclude()
