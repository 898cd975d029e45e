"""Tokens that may not read or write all keys below the prefix: no slot is ever stolen, and the log says why.

A denied list looks empty or short. A key that it does not show counts as gone only when a read of that key
confirms it, and a token that may not read the key never gets that answer.
"""

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from supervisor.adapters.runtime.clock import boottime
from tests.consul.conftest import MakeScene
from tests.consul.semaphores.scene import PRUNE_DELAY_S, ROOM_S, SlotScene
from tests.support.consul import WAYS
from tests.support.guarded import Guarded, below, deny, guarded_agent, write
from tests.support.patience import patient
from tests.support.supervisor import until

pytestmark = pytest.mark.long

LONG_S = PRUNE_DELAY_S + 2.5  # by then a node would have pruned a key that it wrongly takes for gone


@pytest.fixture
def guarded(tmp_path: Path) -> Iterator[Guarded]:
    """Return a server; tests/consul/test_rights.py compares it with a client agent."""
    with guarded_agent(tmp_path, WAYS[0]) as agent:
        yield agent


@pytest.fixture
def scene(guarded: Guarded, make_scene: MakeScene[SlotScene]) -> Iterator[SlotScene]:
    """Return supervisors on an agent that denies by default."""
    with make_scene(guarded) as made:
        yield made


def may(guarded: Guarded, *rules: str) -> str:
    """Create a token with these rules and the right to make sessions."""
    return "".join(rules) + guarded.sessions_rule()


def two_hold(scene: SlotScene, guarded: Guarded) -> None:
    """Start a and b with full rights; they have both slots."""
    scene.limit = 2
    secret = guarded.token_of(may(guarded, below(scene.name))).secret
    for node in "ab":
        scene.holder(node, consul={"token": secret})


def nothing_happens(scene: SlotScene) -> None:
    """Check that nothing changes for longer than a prune delay."""
    before = scene.agent.kv_get(scene.key)
    time.sleep(LONG_S)
    assert scene.agent.kv_get(scene.key) == before
    assert not scene.calls("c")
    assert scene.calls("a") == scene.calls("b") == ["acquire acquired"]


@pytest.mark.parametrize("denied", ["all of it", "all but .lock", "all but .lock and what is beside it"])
def test_a_node_that_may_not_stand_in_line_takes_no_slot(
    scene: SlotScene, guarded: Guarded, denied: str
) -> None:
    two_hold(scene, guarded)
    allowed = {
        "all of it": "",
        "all but .lock": write(scene.key),
        "all but .lock and what is beside it": write(scene.key) + below(f"{scene.name}-other"),
    }
    made = guarded.token_of(may(guarded, allowed[denied]))
    c = scene.node("c", consul={"token": made.secret})
    c.wait_line("exchange-failed", kind="join semaphore")
    assert c.wait_line("consul-denied")["level"] == "error"
    nothing_happens(scene)
    guarded.change(made, may(guarded, below(scene.name)))
    until(lambda: scene.line() == ["c"], "once it may, it stands in line")
    assert scene.nodes["b"].stop() == 0
    scene.wait_holders("a", "c")


def test_a_node_that_sees_only_itself_and_the_record_takes_no_unseen_slot(
    scene: SlotScene, guarded: Guarded
) -> None:
    two_hold(scene, guarded)
    made = guarded.token_of(may(guarded, write(scene.key)))
    c = scene.node("c", consul={"token": made.secret})
    session = until(lambda: scene.session_of("c"), "a session")
    guarded.change(made, may(guarded, write(scene.key) + write(f"{scene.name}/{session}")))
    until(lambda: scene.line() == ["c"], "it stands in line")
    c.wait_line("exchange-failed", kind="read key")
    assert c.wait_line("consul-denied")["level"] == "error"
    nothing_happens(scene)
    assert scene.session_of("c") == session and scene.line() == ["c"]
    assert scene.nodes["a"].stop() == 0
    scene.wait_holders("b", "c")  # a has left, and the record shows that


def test_a_node_that_does_not_see_the_record_of_an_empty_prefix_makes_none(
    scene: SlotScene, guarded: Guarded
) -> None:
    secret = guarded.token_of(may(guarded, below(scene.name), deny(scene.key))).secret
    c = scene.node("c", consul={"token": secret})
    c.wait_line("exchange-failed", kind="join semaphore")
    time.sleep(1.5)
    assert scene.agent.kv_get(scene.key) is None and not scene.calls("c")


def test_a_denied_holder_holds_for_the_rest_of_its_room_and_is_then_replaced(
    scene: SlotScene, guarded: Guarded
) -> None:
    """The holder cannot leave in order, so its session ends and other contenders prune it."""
    scene.limit = 1
    made = guarded.token_of(may(guarded, below(scene.name)))
    a = scene.holder("a", consul={"token": made.secret})
    other = guarded.token_of(may(guarded, below(scene.name))).secret
    scene.waiter("d", consul={"token": other})
    denied_at = boottime()
    guarded.change(made, may(guarded, write(scene.key)))
    lost = scene.wait(node="a", event="lose", stage="end")
    assert lost.reason == "lease-expired"
    assert lost.at > denied_at + ROOM_S - patient(1.5)
    a.wait_line("exchange-failed", kind="leave semaphore")
    assert a.wait_line("consul-denied")["level"] == "error"
    began = scene.next_begin("d")
    assert began.at > lost.at
    guarded.change(made, may(guarded, below(scene.name)))
    until(lambda: scene.line() == ["a"], "a is back")
