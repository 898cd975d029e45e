"""``consul lock -n=3`` and supervisors share three slots."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.consul.semaphores.consul_lock import HOOK, Locker, tenures_of_all
from tests.consul.semaphores.scene import FLAGS, SlotScene
from tests.support.captured import captured
from tests.support.consul import BINARY
from tests.support.supervisor import PATIENCE_S, Supervisor, until
from tests.support.tenures import most_at_once

TIMES = 20  # how often each kind must have begun beside the other kind


@contextmanager
def lockers(scene: SlotScene, count: int, child: str, *, again: bool = True) -> Iterator[list[Locker]]:
    for number in range(count):
        scene.excuse(f"lock{number}")  # a loser of the race for the first slot leaves its session
    made = [Locker(scene, f"lock{number}", child, again=again) for number in range(count)]
    try:
        yield made
        for locker in made:
            locker.stop()
    finally:
        for locker in made:
            locker.close()


def begun(scene: SlotScene, hook: str) -> int:
    return len(scene.records(hook=hook, stage="begin"))


@pytest.mark.long
def test_never_more_than_three_hold_without_crashes_and_both_kinds_make_progress(scene: SlotScene) -> None:
    """Four supervisors stop as soon as they hold, and start again, beside four consul locks."""
    scene.restarts = True
    scene.leaves = True
    with lockers(scene, 4, "sleep 0.4"):
        for node in "abcd":
            scene.node(node)

        def enough() -> bool:
            for node in scene.holders():
                if node in scene.nodes and scene.calls(node)[-1:] == ["acquire acquired"]:
                    assert scene.nodes[node].stop() == 0
                    scene.nodes[node].start()
            return min(begun(scene, HOOK), begun(scene, "acquire")) >= TIMES

        until(enough, f"both begin {TIMES} times", within_s=PATIENCE_S + 10 * TIMES)
        until(lambda: len(scene.holders()) == 3, "all slots are taken")
        until(lambda: all(node in scene.line() + scene.holders() for node in "abcd"), "ours are all up")
        scene.stop()
    assert most_at_once(tenures_of_all(scene.records(), scene.name)) <= 3


@pytest.mark.long
def test_consul_lock_waits_while_we_have_all_slots_and_is_next_at_once(scene: SlotScene) -> None:
    scene.leaves = True
    for node in "abc":
        scene.holder(node)
    with lockers(scene, 1, "sleep 1", again=False) as (locker,):
        until(lambda: len(scene.contenders()) == 4, "it stands in line")
        assert not begun(scene, HOOK)
        assert scene.nodes["b"].stop() == 0
        child = scene.wait(hook=HOOK, stage="begin")
        lost = scene.wait(node="b", event="lose", stage="end")
        assert lost.at <= child.at + 0.02, locker.log
    assert most_at_once(tenures_of_all(scene.records(), scene.name)) == 3
    assert scene.lock()["Limit"] == 3


@pytest.mark.long
def test_our_waiters_are_next_after_consul_lock_has_had_all_slots(scene: SlotScene) -> None:
    scene.leaves = True
    done = scene.folder / "done"
    with lockers(scene, 3, f"until test -e {done}; do sleep 0.1; done", again=False):
        until(lambda: begun(scene, HOOK) == 3, "they hold")
        entry = scene.agent.kv_get(scene.key)
        assert entry is not None and entry["Flags"] == FLAGS
        scene.waiter("a")
        assert not scene.calls("a")
        done.touch()
        ended = scene.wait(hook=HOOK, stage="end")
        assert scene.next_begin("a").at >= ended.at - 0.02
    scene.wait_holders("a")
    assert most_at_once(tenures_of_all(scene.records(), scene.name)) <= 3


@pytest.mark.parametrize("limit", [2, 4])
def test_consul_lock_refuses_another_limit_beside_our_record(
    scene: SlotScene, limit: int, tmp_path: Path
) -> None:
    a = scene.holder("a")
    scene.excuse("lock")  # the refused consul lock leaves its session and its contender key behind
    address = f"-http-addr={scene.agent.host}:{scene.agent.port}"
    command = [str(BINARY), "lock", address, f"-n={limit}", f"-name={scene.name}-lock", scene.name, "true"]
    refused = captured(command, cwd=tmp_path)
    assert refused.returncode == 1
    assert f"semaphore limit conflict (lock: 3, local: {limit})" in refused.stderr
    assert a.running and scene.holders() == ["a"]


@pytest.mark.long
def test_a_slot_that_is_taken_beside_consul_lock_has_no_number_and_status_says_why(scene: SlotScene) -> None:
    """Each write of `consul lock` drops our numbers. They come back once those have left who held then."""
    scene.leaves = scene.restarts = True
    a = scene.holder("a")
    enough = scene.folder / "enough"
    with lockers(scene, 1, f"until [ -e {enough} ]; do sleep 0.1; done", again=False):
        scene.wait(hook=HOOK, stage="begin")
        b = scene.holder("b")
        assert scene.lock()["Slots"] == {scene.session_of("b"): None}
        enough.touch()
        scene.wait(hook=HOOK, stage="end")
    until(lambda: sorted(scene.holders()) == ["a", "b"], "it has left")  # it sorts the sessions
    assert "Slots" not in scene.lock()
    assert (item(a)["slot"], item(a)["warnings"], item(b)["slot"]) == (0, [], None)
    why = "because `consul lock` or an older release has written .lock, without that of"
    warnings = [f"its slot has no number, {why} {scene.session_of('a')}"]
    until(lambda: item(b)["warnings"] == warnings, "b has seen that it has left")
    numbers: list[tuple[Supervisor, int | None]] = [(a, None), (b, 0), (a, 1)]
    for node, slot in numbers:
        assert node.stop() == 0
        node.start()
        wait_slot(node, slot)
        if slot is None:
            assert why in str(item(a)["warnings"])
            until(lambda: "`consul-supervisor step-down" in str(item(b)["warnings"]), "b may get one")
    assert [r.slot for r in scene.records(node="a", stage="begin") if r.event == "lose"] == ["0", ""]


def wait_slot(node: Supervisor, slot: int | None) -> None:
    until(lambda: (item(node)["role"], item(node)["slot"]) == ("holding", slot), f"it holds, as {slot}")


def item(node: Supervisor) -> dict[str, Any]:
    done = node.ask("status", "--json")
    (found,) = json.loads(done.stdout)["items"] if not done.returncode else [{"role": "", "slot": None}]
    assert isinstance(found, dict)
    return found
