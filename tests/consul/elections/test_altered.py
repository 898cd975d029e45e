"""A proxy between this node and Consul changes the request for a session: nothing is held with such a
session.
"""

import json
from collections.abc import Callable

import pytest

from tests.consul.elections.scene import Scene
from tests.support.supervisor import until

NO_BODY = "lock-delay 15 s instead of 45 s, TTL none instead of 3 s"
SESSION = {"ttl": "3s", "lock_delay": "45s"}  # longer than the 15 s of a session without a body
CREATE = ("PUT", "/session/create")


def changed(**fields: object) -> Callable[[bytes], bytes]:
    """Return the request with these fields replaced."""
    return lambda body: json.dumps({**json.loads(body), **fields}).encode()


def no_body(body: bytes) -> bytes:
    """Remove the body, so that Consul makes a session by its defaults."""
    return b""


@pytest.mark.long
@pytest.mark.parametrize(
    ("edit", "said"),
    [
        (no_body, f"{NO_BODY}, node checks serfHealth instead of none"),
        (changed(TTL="2s"), "TTL 2 s instead of 3 s"),
        (changed(Behavior="delete"), "behavior delete instead of release"),
    ],
    ids=["no body", "ttl", "behavior"],
)
def test_nothing_is_held_with_a_session_that_differs_from_the_request(
    scene: Scene, edit: Callable[[bytes], bytes], said: str
) -> None:
    """The supervisor destroys each such session, and log and status name the difference."""
    rule = scene.proxy.change(edit, *CREATE)
    a = scene.node("a", consul={"address": scene.proxy.url}, session=SESSION)
    line = a.wait_line("session-altered", item=scene.name)
    assert line["why"].startswith(said) and "consul.address" in line["why"]
    until(lambda: said in str(a.item()["warnings"]), "a warning in status")
    rule.wait_caught(2)
    assert not a.lines("role", role="acquiring") and not a.lines("request", kind="acquire")
    assert not scene.calls("a")
    first = a.lines("destroying")[0]["session"]
    until(lambda: first not in {each["ID"] for each in scene.agent.sessions()}, "it is destroyed")
