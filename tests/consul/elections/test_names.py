"""One name for a node on all surfaces, which each command takes where it is unambiguous."""

import json
import socket
from typing import Any

import pytest

from tests.consul.elections.scene import Scene
from tests.consul.elections.test_orders import Ordered, holder_of, sessions_of
from tests.consul.locks.machines import NAMESPACE, OTHER_BOOT
from tests.support.supervisor import Supervisor, command, until

HOST = socket.gethostname()  # the agent's node has another name
VIP = "https://vip.example.org/"


class Named(Ordered):
    """A scene whose sessions all have one name, as by default."""

    def item(self, node: str, **changes: Any) -> dict[str, object]:
        return self.election(node, session={"name": self.name, **changes.pop("session", {})}, **changes)

    def wait_shown(self) -> None:
        """Return when two nodes have a session, and the fleet shows one as holding and one as waiting."""
        service = self.config({})["fleet"]["service"]  # type: ignore[index]

        def roles() -> set[str]:
            found = self.agent.call("GET", f"/health/service/{service}").json()
            return {role for each in found for role in each["Service"]["Meta"]}

        until(lambda: len(sessions_of(self)) == 2 and roles() >= {"holding", "waiting"}, "both are shown")


class Booted(Supervisor):
    """A supervisor on a machine that has booted anew."""

    def by_way_of(self) -> list[str]:
        (boot := self.folder / "boot").write_text("another\n")
        return [*NAMESPACE, "sh", "-c", OTHER_BOOT, str(boot)]


@pytest.fixture
def scene_class() -> type[Scene]:
    return Named


@pytest.mark.long
@pytest.mark.parametrize("value", [VIP, "vip.example.org"])
def test_a_hand_over_is_seen_and_aimed_where_all_files_have_one_value(scene: Named, value: str) -> None:
    a, b = scene.leader("a", value=value), scene.node("b", value=value)
    scene.wait_shown()
    waits = b.item()["session"]
    node = next(
        each["Node"] for each in scene.agent.sessions() if each["ID"] == waits
    )  # others share the agent
    called = node if value == VIP else value
    assert f"there are {HOST} or {node} ({waits})" in scene.tell(b, "step-down", "--to", "nobody")[2]
    assert scene.done(b, "step-down", "--for", "0s").startswith(f"{scene.name}: {called} holds it, ")
    assert holder_of(scene) == waits
    scene.wait_shown()
    scene.done(a, "step-down", "--to", HOST, "--for", "0s")
    assert a.item()["holds"], "it was named on itself, while it waited"
    scene.wait_shown()
    out = scene.done(a, "step-down", "--to", HOST)
    assert out.startswith(f"{scene.name}: {called} holds it, ") and b.item()["holds"], "by its own daemon"
    assert {each.item()["last_leader"]["node"] for each in (a, b)} == {value}, "as the table shows it"


@pytest.mark.long
def test_a_session_of_an_earlier_boot_is_told_with_what_ends_it(scene: Named) -> None:
    scene.restarts, unending = True, {"ttl": "none"}
    a = scene.leader("a", session=unending)
    first = holder_of(scene)
    scene.kill("a")
    again = Booted(a.folder, scene.config({scene.name: scene.item("a", session=unending)}))
    scene.nodes["a"] = again
    again.start()
    again.wait_line("role", role="losing", reason="crashed")
    ends = f"`consul-supervisor sessions destroy {first}` ends that"
    until(lambda: ends in " ".join(again.item()["warnings"]), "it is told")
    words = ("sessions", "--orphans", "--json", "--config", str(again.config_path))
    orphans = json.loads(command(*words, environ=again.places).stdout)["sessions"]
    assert [each["session"] for each in orphans] == [first]
    scene.agent.session_destroy(first)
    until(lambda: again.item()["holds"] and not again.item()["warnings"], "it leads")
