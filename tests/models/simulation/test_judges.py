"""The judges are tested: each gets a fault that it must report."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from supervisor.core.actions import Action, HookContext, Reason, Role, StartHook
from supervisor.core.requests import Acquire, JoinSemaphore, LeaveSemaphore, ReadKey, Release
from tests.models.simulation import judges
from tests.models.simulation.files import KEY, PREFIX
from tests.models.simulation.judges import Broken, Judge
from tests.models.simulation.lasting import OneHolderAtTheEnd
from tests.models.simulation.machine import Machine
from tests.models.simulation.scenario import DURATION_S, scenario_of
from tests.models.simulation.simulation import Simulation

SEED = 3  # its election has on_acquire and on_lose


def hook(machine: Machine, event: str, session: str, token: int = 7) -> StartHook:
    hooks = machine.settings.on_acquire if event == "acquire" else machine.settings.on_lose
    context = HookContext(
        event=event,
        name="app",
        key=KEY,
        reason=Reason.ACQUIRED,
        transition=f"{session}-{event}",
        session=session,
        lock_index=1,
        fencing_token=token,
    )
    return StartHook(hooks[0], 1, context)


def spawned(judge: Judge, machine: Machine, event: str, session: str, token: int = 7) -> None:
    child = machine.children.spawn(hook(machine, event, session, token), slow=False, failing=False)
    judge.spawned(machine, child)


def release(session: str) -> Release:
    return Release("app", 0.0, 1.0, KEY, session, b"")


def acquire(session: str) -> Acquire:
    return Acquire("app", 0.0, 1.0, KEY, session, b"")


def leave(session: str) -> LeaveSemaphore:
    return LeaveSemaphore("app", 0.0, 1.0, PREFIX, session)


def enroll(session: str) -> JoinSemaphore:
    return JoinSemaphore("app", 0.0, 1.0, PREFIX, session, b"")


def holder(simulation: Simulation) -> Machine:
    """Return the holder after a minute without faults."""
    simulation.schedule.run(60.0)
    roles = [each.supervisor.contender.role if each.supervisor else None for each in simulation.machines]
    return simulation.machines[roles.index(Role.HOLDING)]


def test_two_nodes_that_act_are_reported(tmp_path: Path) -> None:
    """With an allowed overlap and no lock-delay, two nodes act at once sooner or later."""
    scenario = scenario_of(SEED)
    settings = tuple(
        replace(each, accept_overlap=True, session=replace(each.session, ttl_s=30.0, lock_delay_s=0.0))
        for each in scenario.settings
    )
    with pytest.raises(Broken, match="act as holder at once"):
        for seed in range(20):
            faults = scenario_of(seed).faults
            Simulation(seed, tmp_path / str(seed), replace(scenario, settings=settings, faults=faults)).run()


@pytest.mark.parametrize(
    ("judge", "before", "event", "session", "why"),
    [
        (judges.LoseForEveryAcquire, ["acquire"], "acquire", "s2", "on_lose has not run for s1"),
        (judges.LoseForEveryAcquire, [], "lose", "s1", "never began"),
        (judges.LoseForEveryAcquire, ["acquire", "lose"], "lose", "s1", "runs twice"),
        (judges.OneHookAtATime, ["acquire"], "lose", "s1", "run at once"),
        (judges.OnRecordFirst, [], "acquire", "s1", "not on record"),
    ],
)
def test_a_hook_that_must_not_begin_is_reported(
    machine: Machine, judge: type[Judge], before: list[str], event: str, session: str, why: str
) -> None:
    made = judge()
    for earlier in before:
        spawned(made, machine, earlier, "s1")
    with pytest.raises(Broken, match=why):
        spawned(made, machine, event, session)


@pytest.mark.parametrize(("forward", "back"), [(acquire, release), (enroll, leave)])
def test_an_acquire_after_a_release_is_reported(
    machine: Machine, forward: Callable[[str], Action], back: Callable[[str], Action]
) -> None:
    judge = judges.WritesGoForward()
    judge.did(machine, forward("s1"))
    judge.did(machine, back("s1"))
    with pytest.raises(Broken, match="comes too late"):
        judge.did(machine, forward("s1"))


@pytest.mark.parametrize("back", [release, leave])
def test_a_release_while_the_application_acts_is_reported(
    machine: Machine, back: Callable[[str], Action]
) -> None:
    machine.application.begin(hook(machine, "acquire", "s1").context)
    judges.NoReleaseWhileActing().did(machine, back("s2"))
    with pytest.raises(Broken, match="while it acts"):
        judges.NoReleaseWhileActing().did(machine, back("s1"))


def test_requests_without_end_are_reported(machine: Machine) -> None:
    judge = judges.Gentle()
    question = ReadKey("app", 0.0, 1.0, KEY)
    for _ in range(judges.REQUESTS_A_SECOND_MAX):
        judge.did(machine, question)
    with pytest.raises(Broken, match="within a second"):
        judge.did(machine, question)


@pytest.mark.parametrize(("session", "token"), [("s1", 8), ("s2", 7), ("s2", 6)])
def test_a_token_that_does_not_grow_or_changes_is_reported(
    machine: Machine, session: str, token: int
) -> None:
    judge = judges.TokensGrow()
    spawned(judge, machine, "acquire", "s1", 7)
    with pytest.raises(Broken, match="token"):
        spawned(judge, machine, "acquire", session, token)


@pytest.mark.parametrize("attempt", [acquire("s1"), enroll("s1")])
def test_a_session_that_is_not_on_record_is_reported(machine: Machine, attempt: Action) -> None:
    with pytest.raises(Broken, match="not on record"):
        judges.OnRecordFirst().did(machine, attempt)


def test_a_belief_without_a_contact_is_reported(simulation: Simulation) -> None:
    leader = holder(simulation)
    child = leader.children.spawn(hook(leader, "acquire", "s1"), slow=False, failing=False)
    with pytest.raises(Broken, match="without Consul's word"):
        judges.BeliefHasRoom().spawned(leader, child)


def test_an_end_with_no_holder_or_two_is_reported(simulation: Simulation) -> None:
    holder(simulation)
    simulation.schedule.run(DURATION_S)
    judge = OneHolderAtTheEnd(
        simulation.machines, judges.LoseForEveryAcquire(), simulation.cluster.model.store
    )
    judge.conclude()
    leader = holder(simulation)
    other = next(machine for machine in simulation.machines if machine is not leader)
    other.application.begin(hook(other, "acquire", "s1").context)
    with pytest.raises(Broken, match="still acts"):
        judge.conclude()
    leader.crash("for the test", restart_s=DURATION_S)
    with pytest.raises(Broken, match="of calm"):
        judge.conclude()
