"""Writes that Consul applies seconds after the supervisor gave up on them, and responses that never come.

A proxy stands between node a and Consul. Node b, where there is one, talks to Consul directly. Each time
there must never be two holders, in the end some node must lead again, and no session may be left behind.
"""

from typing import Any

import pytest

from tests.consul.elections.scene import Scene
from tests.support.supervisor import Supervisor, until

pytestmark = pytest.mark.long  # `make test-long`: the tests wait for writes that come late

Request = dict[str, Any]  # requests that a rule of the proxy matches

LOCK: Request = {"method": "PUT", "path": "/txn", "body": b'"lock"'}
UNLOCK: Request = {"method": "PUT", "path": "release="}
CREATE: Request = {"method": "PUT", "path": "/session/create"}
DESTROY: Request = {"method": "PUT", "path": "/session/destroy"}
SHORT = {"ttl": "1s"}  # for nodes whose session Consul itself must end


def start(scene: Scene, **changes: Any) -> Supervisor:
    """Start node a behind the proxy."""
    return scene.node("a", consul={"address": scene.proxy.url}, **changes)


def lead(scene: Scene, **changes: Any) -> Supervisor:
    """Start node a behind the proxy as leader."""
    return scene.leader("a", consul={"address": scene.proxy.url}, **changes)


def holder(scene: Scene) -> str:
    """Return the session on the key."""
    entry = scene.agent.kv_get(scene.key)
    return entry["Session"] if entry else ""


def test_an_acquire_that_is_applied_between_release_and_destroy_is_refused(scene: Scene) -> None:
    """The key has changed since the acquire was decided on."""
    acquire = scene.proxy.hold("request", **LOCK, times=1)
    destroy = scene.proxy.hold("request", **DESTROY, times=1)
    lose_by_failing(scene, session={"ttl": "60s"})
    destroy.wait_caught()
    assert holder(scene) == ""
    acquire.release()
    assert holder(scene) == ""
    scene.node("b")
    assert scene.wait_leader() == "b"
    destroy.release()
    assert scene.calls("a") == ["acquire acquired", "lose acquire-failed"]


def test_late_acquires_while_another_node_leads_are_refused(scene: Scene) -> None:
    rule = scene.proxy.hold("request", **LOCK)
    start(scene)
    rule.wait_caught()
    b = scene.leader("b")
    scene.wait_told("a", "leader-changed b")
    rule.release()
    assert holder(scene) == scene.session_of("b")
    assert b.stop() == 0
    assert scene.wait_leader() == "a"
    assert scene.calls("b") == ["acquire acquired", "lose shutdown"]


def test_an_acquire_that_is_applied_after_a_stop_takes_nothing(scene: Scene) -> None:
    rule = scene.proxy.hold("request", **LOCK)
    a = start(scene)
    rule.wait_caught()
    assert a.stop() == 0
    rule.release()
    assert holder(scene) == ""
    assert scene.calls("a") == []
    scene.leader("b")


def lose_by_failing(scene: Scene, **changes: Any) -> Supervisor:
    """Let node a acquire, fail, and give the lock up while its process goes on."""
    return start(scene, on_acquire=[scene.hook("a", "acquire", "exit 1")], rejoin_delay="1m", **changes)


@pytest.mark.parametrize("stage", ["request", "answer"])
def test_an_unanswered_release_is_repeated_and_its_late_twin_harms_no_holder(
    scene: Scene, stage: str
) -> None:
    rule = scene.proxy.hold("request" if stage == "request" else "answer", **UNLOCK, times=1)
    lose_by_failing(scene)
    rule.wait_caught()
    scene.node("b")
    assert scene.wait_leader() == "b"
    until(lambda: not scene.session_of("a"), "a's session is destroyed")
    rule.release()
    assert holder(scene) == scene.session_of("b")
    assert scene.calls("a") == ["acquire acquired", "lose acquire-failed"]


def disown(scene: Scene, session: str) -> None:
    """Answer one renewal with "no such session".

    A server that has just restarted does so when it leads before it has read its log to the end.
    """
    text = f"Session id '{session}' not found"
    scene.proxy.answer("404 Not Found", text, "PUT", f"/session/renew/{session}", times=1).wait_caught()


def test_a_holder_believes_the_key_and_not_a_server_that_has_just_restarted(scene: Scene) -> None:
    lead(scene)
    session = scene.session_of("a")
    disown(scene, session)
    asked = len(scene.proxy.exchanges)
    renewed = f"/session/renew/{session}"
    until(lambda: any(renewed in one.target for one in scene.proxy.exchanges[asked:]), renewed)
    assert scene.session_of("a") == session and scene.calls("a") == ["acquire acquired"]


@pytest.mark.parametrize("moment", ["waiting", "acquiring", "holding", "losing"])
def test_a_stop_in_silence_ends_in_order_and_another_leads_afterwards(scene: Scene, moment: str) -> None:
    """on_lose runs; the release and the destroy are sent once each, and Consul applies them much later."""
    if moment == "waiting":
        scene.leader("b")
    slow = {"on_acquire": [scene.hook("a", "acquire", "sleep 60")]} if moment == "acquiring" else {}
    a = start(scene, session=SHORT, on_lose=[scene.hook("a", "lose", "sleep 0.3")], **slow)
    if moment == "waiting":
        until(lambda: scene.session_of("a"), "a waits")
    else:
        scene.wait(node="a", event="acquire", stage="begin" if moment == "acquiring" else "end")
    if moment == "losing":
        scene.agent.session_destroy(scene.session_of("a"))
        scene.wait(node="a", event="lose", stage="begin")
    with scene.proxy.silence():
        assert a.stop() == 0
        reasons = {"losing": "session-invalidated", "waiting": ""}
        lost = f"lose {reasons.get(moment, 'shutdown')}"
        assert scene.calls("a") == ([] if moment == "waiting" else ["acquire acquired", lost])
        if moment != "waiting":
            scene.node("b")
            assert scene.wait_leader() == "b"
    assert holder(scene) == scene.session_of("b")
    until(lambda: not scene.sessions_of("a"), "nothing of a is left")
