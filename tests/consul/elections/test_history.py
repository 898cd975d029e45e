"""Who led and why that changed, as any node tells it from Consul."""

import json
import signal
import time
from functools import partial
from typing import Any

import pytest

from supervisor.daemon.fleet.history import EVERY_S
from supervisor.reporting.control import OperatorCommand, Result, Verb
from supervisor.reporting.control.fetch import ask
from tests.consul.elections.scene import Scene
from tests.consul.elections.test_fence import lost_machine, with_fence
from tests.support.supervisor import Supervisor, command, until

WHY = "disk swap: ä"
EMPTY = b'{"version":1,"count":0,"tenures":[]}'


class Fleet(Scene):
    """A scene whose nodes have a section fleet."""

    def config(self, items: Any, consul: Any = None) -> dict[str, object]:
        return {**super().config(items, consul), "fleet": {"prefix": f"{self.name}-fleet"}}

    @property
    def history_key(self) -> str:
        return f"{self.name}-fleet/history/{self.name}"

    def stored(self) -> dict[str, Any]:
        """Return the key of the history, once it is there."""
        return until(lambda: self.agent.kv_get(self.history_key), "the history is written") or {}

    def document(self) -> dict[str, Any]:
        return dict(json.loads(self.stored()["Value"]))

    def led_by(self, node: str, **how: Any) -> Supervisor:
        return self.leader(node, value=json.dumps({"Node": node}), **how)

    def awaited_by(self, node: str, **how: Any) -> Supervisor:
        return self.waiter(node, value=json.dumps({"Node": node}), **how)

    def observer(self) -> Supervisor:
        return self.node("c", items={self.name: {"key": self.key, "contend": False}})

    def asked(self, node: Supervisor, *words: str) -> tuple[int, str, str]:
        path = str(node.config_path)
        done = command("history", self.name, "--config", path, *words, environ=node.places)
        return done.returncode, done.stdout, done.stderr

    def history(self, node: Supervisor) -> list[dict[str, Any]]:
        code, out, error = self.asked(node, "--json")
        assert code in (0, 1), error
        return list(json.loads(out)["tenures"]) if code == 0 else []

    def ends(self, node: Supervisor) -> list[tuple[str, str | None]]:
        """Return the node and the reason of each tenure, the newest first."""
        return [(each["node"], each["why"]) for each in self.history(node)]


@pytest.fixture
def scene_class() -> type[Scene]:
    return Fleet


@pytest.mark.long
def test_a_node_that_never_led_tells_who_led_and_why_it_changed(scene: Fleet) -> None:
    scene.restarts = True
    a = scene.led_by("a")
    scene.awaited_by("b")
    c = scene.observer()
    until(lambda: scene.ends(c) == [("a", None)], "a is told")
    assert a.ask("step-down", scene.name, "--reason", WHY, "--for", "5m").returncode == 0
    until(lambda: scene.ends(c) == [("b", None), ("a", "step-down")], "the step-down is told")
    first = scene.history(c)[1]
    assert (first["note"], first["guard"]) == (WHY, None) and first["by"]
    assert first["from"] < first["to"] and first["session"] != scene.history(c)[0]["session"]
    assert a.ask("resume", scene.name).returncode == 0
    scene.kill("b")
    until(lambda: scene.ends(c)[0] == ("a", None), "the second successor is told")
    silent = scene.history(c)[1]
    assert silent["why"] == "ended without a word"
    assert silent["from"] < silent["to"] <= scene.history(c)[0]["from"]
    assert a.stop() == 0
    assert scene.ends(c) == [("a", "shutdown"), ("b", "ended without a word"), ("a", "step-down")]
    tokens = [each["token"] for each in scene.history(c)]
    assert tokens == sorted(tokens, reverse=True)
    code, table, _ = scene.asked(c, "--limit", "2")
    assert code == 0 and len(table.splitlines()) == 3 and "ended without a word" in table
    assert json.loads(scene.asked(c, "--json")[1])["count"] == 3 and scene.stored()["Flags"] == 0
    scene.agent.kv_delete(scene.history_key)


@pytest.mark.long
def test_a_guard_s_end_is_told_with_the_end_of_the_machine_before(scene: Fleet) -> None:
    lost_machine(scene)
    lost = scene.agent.kv_get(f"{scene.key}/.tenure")
    assert lost is not None
    former = {"token": 7, "node": "lost", "session": json.loads(lost["Value"])["session"]}
    began = {"from": "2026-11-22T15:01:07.612Z", "to": None}
    document = {"version": 1, "count": 61, "tenures": [{**former, **began}]}
    assert scene.agent.kv_put(scene.history_key, json.dumps(document).encode())
    works = scene.folder / "works"
    fence = with_fence(scene, "a", f"test -e {works}", required=True)
    a = scene.node("a", value=json.dumps({"Node": "a"}), **fence)
    a.wait_line("role", role="acquiring")
    assert a.ask("step-down", scene.name, "--for", "0s").returncode == 1, "nobody takes over"
    works.touch()  # what an operator has ended before was a guard, and no tenure
    until(lambda: scene.ends(a) == [("a", None), ("lost", "ended without a word")], "both are told")
    assert scene.history(a)[0]["guard"] == "fenced" and scene.document()["count"] == 62
    node = scene.history(a)[0]["node"]
    assert f"ended without a word, {node} fenced it" in scene.asked(a)[1]
    assert a.stop() == 0
    scene.agent.kv_delete(scene.history_key)


@pytest.mark.long
def test_a_broken_file_does_not_hide_the_history(scene: Fleet) -> None:
    """The daemon and the command go on by the accepted configuration."""
    scene.restarts = True
    a = scene.led_by("a")
    until(lambda: scene.ends(a) == [("a", None)], "it is told")
    a.config_path.write_text("elections: 7")
    code, out, error = scene.asked(a)
    assert code == 0 and " a " in out and "has accepted last" in error
    assert a.stop() == 0
    a.start()
    until(lambda: scene.ends(a) == [("a", None), ("a", "shutdown")], "the next one is told")
    assert a.stop() == 0
    scene.agent.kv_delete(scene.history_key)


@pytest.mark.long
def test_a_stuck_tenure_has_no_end(scene: Fleet) -> None:
    a = scene.led_by("a", on_lose=[scene.hook("a", "lose", "exit 1")])
    until(lambda: scene.ends(a) == [("a", None)], "it is told")
    a.signal(signal.SIGTERM)
    assert a.wait() == 1
    scene.excuse("a")
    assert scene.ends(a) == [("a", None)]
    written_by_hand = {"token": 7, "node": "b", "session": "s", "from": "2026-11-22T14:02:00Z"}
    scene.agent.kv_put(
        scene.history_key, json.dumps({**scene.document(), "tenures": [written_by_hand]}).encode()
    )
    assert " b " in scene.asked(a)[1]
    scene.agent.kv_delete(scene.history_key)


@pytest.mark.long
def test_what_flaps_is_told_whole_by_two_writers_in_few_writes(scene: Fleet) -> None:
    """Both nodes write after each hand-over, at the same time."""
    nodes = {"a": scene.led_by("a"), "b": scene.awaited_by("b")}
    began_at, written, changes = time.monotonic(), set(), 16
    for change in range(changes):
        here, there = ("a", "b") if change % 2 == 0 else ("b", "a")
        path = str(nodes[here].folder / "control.sock")
        until(partial(scene.session_of, there), "the other contends")
        done = ask(path, OperatorCommand(Verb.STEP_DOWN, scene.name))
        assert done.outcome is Result.DONE, done
        assert ask(path, OperatorCommand(Verb.RESUME, scene.name)).outcome is Result.DONE
        scene.wait_leader(but=here)
        written.add(scene.stored()["ModifyIndex"])
    lasted_s = time.monotonic() - began_at
    scene.stop()
    told = scene.history(nodes["a"])
    assert scene.document()["count"] == changes + 1 == len(told)
    assert [each["node"] for each in told] == ["a", *"ba" * (changes // 2)]
    assert [each["why"] for each in told] == ["shutdown", *["step-down"] * changes]
    assert len(written) <= 2 * (1 + lasted_s / EVERY_S) + 1
    scene.agent.kv_delete(scene.history_key)


@pytest.mark.long
@pytest.mark.parametrize(("value", "flags"), [(b"precious", 0), (EMPTY, 42)])
def test_what_another_program_has_written_is_left_alone_until_it_is_gone(
    scene: Fleet, value: bytes, flags: int
) -> None:
    assert scene.agent.kv_put(scene.history_key, value, flags=flags)
    a = scene.led_by("a")
    assert f"{scene.history_key} is left alone: " in a.wait_line("history-failed")["why"]
    assert scene.stored()["Value"] == value and len(a.status()["warnings"]) == 1
    assert scene.asked(a)[0] == 1
    scene.agent.kv_delete(scene.history_key)
    a.wait_line("history-recovered")
    assert scene.ends(a) == [("a", None)]
    assert len(a.lines("history-failed")) == 1
    assert a.stop() == 0 and scene.ends(a) == [("a", "shutdown")]
    scene.agent.kv_put(scene.history_key, EMPTY)
    assert f"no tenure of {scene.name} is known: {scene.history_key} has none" in scene.asked(a)[2]
    scene.agent.kv_delete(scene.history_key)
    assert f"{scene.history_key} does not exist" in scene.asked(a)[2]


@pytest.mark.long
def test_a_reload_moves_the_history_of_the_present_tenure(scene: Fleet) -> None:
    a = scene.led_by("a")
    first = scene.stored()["Value"]
    config = scene.config({scene.name: scene.item("a", value='{"Node": "a"}')})
    a.rewrite({**config, "fleet": {"prefix": f"{scene.name}-other"}})
    assert a.operate("reload")[0] == 0
    until(lambda: scene.ends(a) == [("a", None)], "it is told anew")
    assert scene.stored()["Value"] == first
    del config["fleet"]
    a.rewrite(config)
    assert a.operate("reload")[0] == 0
    code, _, error = scene.asked(a)
    assert code == 78 and "add `fleet: {}`" in error
    assert a.stop() == 0
    for prefix in ("fleet", "other"):
        key = f"{scene.name}-{prefix}/history/{scene.name}"
        entry = scene.agent.kv_get(key)
        assert entry is not None and json.loads(entry["Value"])["tenures"][0]["to"] is None
        scene.agent.kv_delete(key)
