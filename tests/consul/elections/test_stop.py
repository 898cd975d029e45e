"""A stop ends in order in every state and without Consul; a second signal ends the supervisor at once."""

import signal

import pytest

from tests.consul.elections.scene import Scene
from tests.support.supervisor import assert_none_left


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_sigterm_and_sigint_end_the_supervisor_with_0(scene: Scene, number: signal.Signals) -> None:
    a = scene.leader("a")
    a.signal(number)
    assert a.wait() == 0
    assert scene.calls("a") == ["acquire acquired", "lose shutdown"]
    assert not scene.sessions()


def test_a_second_signal_kills_running_hooks_and_exits_1(scene: Scene) -> None:
    a = scene.leader("a", on_lose=[scene.hook("a", "lose", "sleep 600; :", timeout="40s")],
                     session={"lock_delay": "60s", "ttl": "2s"})  # fmt: skip
    scene.excuse("a")
    a.signal(signal.SIGTERM)
    scene.wait(node="a", event="lose", stage="begin")
    a.signal(signal.SIGTERM)
    assert a.wait() == 1
    assert not scene.records(event="lose", stage="end")
    assert_none_left(scene.processes)
    assert a.lines("interrupted") and a.lines("stopped", clean=False)
