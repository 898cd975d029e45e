"""Newer versions of Consul, each played by a proxy before a real one."""

import pytest

from supervisor.core.lock.base import ANSWER_S_MAX, WAIT_S
from tests.consul.elections.scene import Scene
from tests.support.supervisor import until

EOF = ("500 Internal Server Error", "rpc error making call: EOF")
DEADLINE = ("500 Internal Server Error", "rpc error making call: i/o deadline reached")
RENEWS = {"ttl": "1s", "lock_delay": "20s"}  # a holder renews each third of a second


def leads(scene: Scene, **changes: object) -> None:
    scene.leader("a", consul={"address": scene.proxy.url}, **changes)


def test_a_watch_ends_before_the_time_after_which_1_22_4_closes_it(scene: Scene) -> None:
    leads(scene)
    assert ANSWER_S_MAX < 30
    waits = until(lambda: [one for one in scene.proxy.exchanges if "wait=" in one.target], "it watches")
    assert all(f"wait={WAIT_S:g}s" in one.target for one in waits) and WAIT_S <= 25


@pytest.mark.long
def test_the_first_write_after_a_rest_may_be_lost_each_time(scene: Scene) -> None:
    """2.0.4 does so: one line tells it, and not one for each renewal."""
    leads(scene, session=RENEWS)
    a = scene.nodes["a"]
    for _ in range(6):
        scene.proxy.answer(*EOF, "PUT", "/session/renew", times=1).wait_caught()
        scene.proxy.lie(bytes, "PUT", "/session/renew").wait_caught()
    assert scene.calls("a") == ["acquire acquired"]
    assert len(a.lines("consul-drops")) == 1 and not a.lines("consul-fails")
    assert not a.lines("consul-answers", after="consul-drops")


@pytest.mark.long
@pytest.mark.parametrize("ends", ["step-down", "stop"])
def test_a_release_that_is_lost_after_a_rest_costs_no_lock_delay(scene: Scene, ends: str) -> None:
    leads(scene, session={"ttl": "5s", "lock_delay": "20s"})
    scene.waiter("b")
    release = scene.proxy.answer(*EOF, "PUT", "release=", times=1)
    destroy = scene.proxy.answer(*EOF, "PUT", "/session/destroy", times=1)
    if ends == "stop":
        assert scene.nodes["a"].stop() == 0
    else:
        assert scene.nodes["a"].operate("step-down", scene.name)[0] == 0
    assert scene.wait_leader(but="a", within_s=10) == "b"
    assert len(release.caught) == 1
    until(lambda: destroy.caught and not scene.session_of("a"), "the session of the tenure is gone")


@pytest.mark.long
def test_a_watch_that_ends_with_an_error_is_repeated_and_the_holder_goes_on(scene: Scene) -> None:
    """1.12.6, 1.13.3 and 1.14.0 do so at the end of a wait."""
    leads(scene)
    rule = scene.proxy.answer(*DEADLINE, "GET", "wait=", times=3)
    scene.agent.kv_put(scene.key, b"1")  # ends the watch under way
    rule.wait_caught(3)
    scene.agent.kv_put(scene.key, b"2")
    scene.wait_told("a", "value-changed 2")
    assert scene.calls("a") == ["acquire acquired"]


@pytest.mark.long
def test_an_agent_that_does_not_know_the_token_at_first_refuses_nothing_for_long(scene: Scene) -> None:
    """A client agent remembers for 30 s that it did not find a token."""
    rule = scene.proxy.answer("403 Forbidden", "ACL not found", "GET", "/v1/agent/checks", times=1)
    check = {"maintenance": True, "interval": "1s"}
    scene.node("a", consul={"address": scene.proxy.url}, candidate_check=check)
    assert scene.wait_leader() == "a"
    assert rule.caught and len(scene.nodes["a"].lines("consul-denied")) == 1


@pytest.mark.long
def test_a_longer_ttl_than_requested_is_no_other_session(scene: Scene) -> None:
    """Consul may answer one under load."""
    rule = scene.proxy.lie(lambda part: part.replace(b'5s"', b'9s"'), "PUT", "/session/renew")
    leads(scene, session={"ttl": "5s"})
    rule.wait_caught(2)
    assert scene.calls("a") == ["acquire acquired"] and not scene.nodes["a"].lines("session-altered")


@pytest.mark.parametrize("ends", ["step-down", "stop"])
def test_an_agent_whose_first_word_is_lost_names_nobody_for_long(scene: Scene, ends: str) -> None:
    """2.0.4 loses the write by which it tells its servers that a check has failed."""
    name = scene.name.replace("_", "-")[:50]
    leads(scene, service={"name": name})
    passing = f"/health/service/{name}?passing"
    until(lambda: scene.agent.call("GET", passing).json(), "it is named")
    rule = scene.proxy.answer("200 OK", "", "PUT", "/check/fail/", times=1)
    a = scene.nodes["a"]
    assert a.stop() == 0 if ends == "stop" else a.operate("step-down", scene.name, "--for", "1h")
    rule.wait_caught()
    until(lambda: scene.agent.call("GET", passing).json() == [], "nobody is named", 2.0)
