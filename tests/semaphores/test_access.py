"""Tokens that may not see or not write all below the prefix: no slot is ever stolen, and it is said.

A denied list looks empty or short. What it does not show counts as gone only when a read of the one
key says so, and to one that may not read that key nothing ever does.
"""

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.elections.scene import boottime
from tests.elections.test_access import Guarded
from tests.semaphores.conftest import MakeScene
from tests.semaphores.scene import PRUNE_DELAY_S, ROOM_S, SlotScene
from tests.support.supervisor import until

LONG_S = PRUNE_DELAY_S + 2.5  # what is wrongly taken for gone would be pruned by then


class Rules(Guarded):
    """Makes tokens by rules, and changes the rules."""

    def token_of(self, rules: str) -> tuple[str, str]:
        """The id of a policy with these rules, which also lets make sessions, and a token of it."""
        node = self.call("GET", "/agent/self").json()["Config"]["NodeName"]
        self._sessions = f'\nsession "{node}" {{ policy = "write" }}'
        name = f"semaphore-{len(self.call('GET', '/acl/policies').json())}"
        policy = self.call("PUT", "/acl/policy", {"Name": name, "Rules": rules + self._sessions}).json()
        made = self.call("PUT", "/acl/token", {"Policies": [{"Name": name}]})
        assert made.status == 200, made
        return policy["ID"], made.json()["SecretID"]

    def change(self, policy: str, rules: str) -> None:
        """Other rules for those that have this policy."""
        name = self.call("GET", f"/acl/policy/{policy}").json()["Name"]
        body = {"ID": policy, "Name": name, "Rules": rules + self._sessions}
        assert self.call("PUT", f"/acl/policy/{policy}", body).status == 200


def write(key: str) -> str:
    return f'key "{key}" {{ policy = "write" }}\n'


def below(prefix: str) -> str:
    return f'key_prefix "{prefix}/" {{ policy = "write" }}\n'


@pytest.fixture
def rules(tmp_path: Path) -> Iterator[Rules]:
    with Rules(tmp_path / "guarded") as agent:
        yield agent


@pytest.fixture
def scene(rules: Rules, make_scene: MakeScene) -> Iterator[SlotScene]:
    """Supervisors on an agent that denies by default."""
    with make_scene(rules) as made:
        yield made


def two_hold(scene: SlotScene, rules: Rules) -> None:
    """a and b may do all that they need, and have both slots."""
    scene.limit = 2
    _, secret = rules.token_of(below(scene.name))
    for node in "ab":
        scene.holder(node, consul={"token": secret})


def nothing_happens(scene: SlotScene) -> None:
    """For longer than a prune delay."""
    before = scene.agent.kv_get(scene.key)
    time.sleep(LONG_S)
    assert scene.agent.kv_get(scene.key) == before
    assert not scene.calls("c")
    assert scene.calls("a") == scene.calls("b") == ["acquire acquired"]


def test_what_a_semaphore_needs_is_its_prefix_and_sessions(scene: SlotScene, rules: Rules) -> None:
    two_hold(scene, rules)
    _, secret = rules.token_of(below(scene.name))
    c = scene.waiter("c", consul={"token": secret})
    assert scene.nodes["a"].stop() == 0
    scene.wait_holders("b", "c")
    assert not c.lines("consul-denied") and secret not in c.log_text


@pytest.mark.parametrize("denied", ["all of it", "all but .lock", "all but .lock and what is beside it"])
def test_who_may_not_stand_in_line_takes_nothing(scene: SlotScene, rules: Rules, denied: str) -> None:
    two_hold(scene, rules)
    allowed = {
        "all of it": "",
        "all but .lock": write(scene.key),
        "all but .lock and what is beside it": write(scene.key) + below(f"{scene.name}-other"),
    }
    policy, secret = rules.token_of(allowed[denied])
    c = scene.node("c", consul={"token": secret})
    c.wait_line("exchange-failed", kind="Enroll")
    assert c.wait_line("consul-denied")["level"] == "error"
    nothing_happens(scene)
    rules.change(policy, below(scene.name))
    until(lambda: scene.line() == ["c"], "once it may, it stands in line")
    assert scene.nodes["b"].stop() == 0
    scene.wait_holders("a", "c")


def test_who_sees_itself_and_the_record_alone_takes_no_slot_of_those_it_does_not_see(
    scene: SlotScene, rules: Rules
) -> None:
    two_hold(scene, rules)
    policy, secret = rules.token_of(write(scene.key))
    c = scene.node("c", consul={"token": secret})
    session = until(lambda: scene.session_of("c"), "a session")
    rules.change(policy, write(scene.key) + write(f"{scene.name}/{session}"))
    until(lambda: scene.line() == ["c"], "it stands in line")
    c.wait_line("exchange-failed", kind="ReadKey")
    assert c.wait_line("consul-denied")["level"] == "error"
    nothing_happens(scene)
    assert scene.session_of("c") == session and scene.line() == ["c"]
    assert scene.nodes["a"].stop() == 0
    scene.wait_holders("b", "c")  # a has left, and the record says so


def test_who_does_not_see_the_record_makes_none(scene: SlotScene, rules: Rules) -> None:
    two_hold(scene, rules)
    policy, secret = rules.token_of(below(scene.name) + f'key "{scene.key}" {{ policy = "deny" }}\n')
    c = scene.node("c", consul={"token": secret})
    until(lambda: scene.line() == ["c"], "it stands in line")
    c.wait_line("exchange-failed", kind="ReadKey")
    assert c.wait_line("consul-denied")["level"] == "error"
    nothing_happens(scene)
    rules.change(policy, below(scene.name))
    assert scene.nodes["a"].stop() == 0
    scene.wait_holders("b", "c")


def test_who_does_not_see_the_record_of_an_empty_prefix_makes_none(scene: SlotScene, rules: Rules) -> None:
    _, secret = rules.token_of(below(scene.name) + f'key "{scene.key}" {{ policy = "deny" }}\n')
    c = scene.node("c", consul={"token": secret})
    c.wait_line("exchange-failed", kind="Enroll")
    time.sleep(1.5)
    assert scene.agent.kv_get(scene.key) is None and not scene.calls("c")


def test_a_holder_that_is_denied_holds_for_the_rest_of_its_room_and_is_then_replaced(
    scene: SlotScene, rules: Rules
) -> None:
    """It cannot leave either: its session ends, and the others prune it."""
    scene.limit = 1
    policy, secret = rules.token_of(below(scene.name))
    a = scene.holder("a", consul={"token": secret})
    _, other = rules.token_of(below(scene.name))
    scene.waiter("d", consul={"token": other})
    denied_at = boottime()
    rules.change(policy, write(scene.key))
    lost = scene.wait(node="a", event="lose", stage="end")
    assert lost.reason == "lease-expired"
    assert denied_at + ROOM_S - 1.5 < lost.at < denied_at + ROOM_S + 1.5
    a.wait_line("exchange-failed", kind="Leave")
    assert a.wait_line("consul-denied")["level"] == "error"
    began = scene.next_begin("d")
    assert began.at > lost.at
    rules.change(policy, below(scene.name))
    until(lambda: scene.line() == ["a"], "a is back")
