"""An operator's commands where the tenure record keeps others waiting for longer than Consul's lock-delay."""

import re
import shlex
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import pytest

from supervisor.config.formats.durations import parse_duration
from tests.consul.elections.scene import Scene
from tests.consul.elections.test_events import operate
from tests.consul.elections.test_fence import fenced, hold_elsewhere, leave_as_lost, record
from tests.consul.elections.test_foreign_data import LOCK_FLAGS
from tests.support.supervisor import Supervisor, command, until

LONG_FLAGS = LOCK_FLAGS + 2
SILENT = r"Consul is silent since 20\S+Z, so nobody could take over NAME: the application would stop, and "
LOST = "which may act until 20"


def outlasting(scene: Scene, node: str, outage: str = "1m", **more: Any) -> dict[str, Any]:
    fence = fenced(scene, node, "exit 1", outage=outage)
    return scene.item(node, **{"fence": fence, "session": {"ttl": "30s"}, **more})


def leader(scene: Scene) -> Supervisor:
    return scene.leader("a", items={scene.name: outlasting(scene, "a")})


def waits(scene: Scene) -> Supervisor:
    a = scene.node("a", items={scene.name: outlasting(scene, "a")})
    a.wait_line("role", role="acquiring")
    until(lambda: a.item()["reason"] == "waits for db7", "it has read the record")
    return a


@contextmanager
def silence(scene: Scene, a: Supervisor) -> Iterator[None]:
    scene.agent.freeze()
    try:
        until(lambda: a.item()["silent_since"], "it rides out the silence")
        yield
    finally:
        scene.agent.thaw()


@pytest.mark.long
def test_nothing_is_given_up_in_a_silence_without_force(own_scene: Scene) -> None:
    scene = own_scene
    a = leader(scene)
    with silence(scene, a):
        for words in (
            ["step-down", scene.name],
            ["step-down", "--all"],
            ["step-down", scene.name, "--to", "b"],
            ["drain"],
            ["drain", "--dry-run"],
            ["reload"],
            ["reload"],
        ):
            if words == ["reload"]:
                items = {} if a.lines("reload-refused") else {scene.name: outlasting(scene, "a", key="other")}
                a.rewrite(scene.config({**items, "new": {}}))
            code, out, error = operate(a, *words)
            assert (code, out) == (1, ""), words
            assert re.search(SILENT.replace("NAME", scene.name), error), words
            remedy = "--force drains this node all " if "drain" in words else "; wait for Consul, or give "
            assert remedy in error and ("nothing changes" in error) is (words == ["reload"]), words
        assert len(a.lines("reload-refused")) == 2
        assert operate(a, "holds", scene.name)[0] == 0 and not a.item()["paused"]
    until(lambda: not a.item()["silent_since"], "Consul answers")
    assert scene.calls("a") == ["acquire acquired"]


@pytest.mark.long
@pytest.mark.parametrize("words", ["step-down NAME --for 1s", "drain", "reload"])
def test_with_force_it_is_given_up_in_a_silence_as_well(own_scene: Scene, words: str) -> None:
    scene = own_scene
    a = leader(scene)
    a.rewrite(scene.config({"new": {}}))
    with ThreadPoolExecutor() as pool, silence(scene, a):
        ran = pool.submit(operate, a, *words.replace("NAME", scene.name).split(), "--force")
        scene.wait(node="a", event="lose", stage="end")
        scene.agent.thaw()
        assert "Consul is silent" not in ran.result()[2]


@pytest.mark.long
def test_a_reload_returns_when_belief_counts_by_the_file_or_says_that_it_does_not(own_scene: Scene) -> None:
    scene = own_scene
    a = leader(scene)

    def reloaded(outage: str) -> tuple[int, str, str]:
        a.rewrite(scene.config({scene.name: outlasting(scene, "a", outage)}))
        return operate(a, "reload")

    def left_s() -> float:
        return float(a.item()["lease_left_s"])

    for outage, least_s in (("10m", 600.0), ("5m", 300.0), ("20m", 1200.0)):
        assert reloaded(outage) == (0, f"{scene.name}: changed\n", "")
        assert least_s < left_s() < least_s + 9.0
    said = record(scene)
    assert said is not None and parse_duration(said["lock_delay"]) > 1200.0
    with ThreadPoolExecutor() as pool, silence(scene, a):
        again = pool.submit(lambda: a.wait_line("reloaded", changed=scene.name) and operate(a, "reload"))
        for code, out, error in (reloaded("30m"), again.result()):
            assert (code, out) == (1, "")
            assert f"accepted, and in force for {scene.name} with the next contact: Consul has not " in error
        assert left_s() < 1200.0
    until(lambda: left_s() > 1800.0, "Consul has confirmed it")
    assert operate(a, "reload") == (0, "nothing has changed\n", "")
    assert scene.calls("a") == ["acquire acquired"]


def test_who_confirms_that_a_machine_is_off_that_may_act_for_long_names_it(scene: Scene) -> None:
    leave_as_lost(scene.agent, scene.key, flags=LONG_FLAGS, lock_delay="16m")
    a = waits(scene)
    advised = a.item()["warnings"][-1]
    line = f"consul-supervisor confirm-off {scene.name} --machine db7"
    assert advised.endswith(f"if that machine is off: `{line}`")
    for given, other in ((), ""), (("--machine", "db8"), " and not for db8"):
        code, out, error = operate(a, "confirm-off", scene.name, *given)
        assert (code, out) == (1, "")
        assert f"cannot confirm-off {scene.name}: it waits for db7{other}, {LOST}" in error
        assert error.endswith(f"if that machine is not off, two act; if it is: {line}\n")
    assert scene.calls("a") == []
    code, out, error = operate(a, *shlex.split(line)[1:])
    assert (code, error) == (0, "")
    assert "this node goes on; db7 might have acted until 20" in out
    scene.wait(node="a", event="acquire", stage="end")


def test_behind_any_other_record_the_machine_may_be_named(scene: Scene) -> None:
    leave_as_lost(scene.agent, scene.key, lock_delay="50s")
    a = waits(scene)
    code, _, error = operate(a, "confirm-off", scene.name, "--machine", "db8")
    assert code == 1 and f"it waits for db7 and not for db8, {LOST}" in error
    code, out, _ = operate(a, "confirm-off", scene.name)
    assert code == 0 and out.endswith("; this node goes on\n")


@pytest.mark.parametrize("flags", [LONG_FLAGS, LOCK_FLAGS])
def test_before_a_session_is_destroyed_its_long_record_is_told(scene: Scene, flags: int) -> None:
    session = hold_elsewhere(scene.agent, scene.key, flags, lock_delay="16m")
    a = scene.node("a", items={scene.name: outlasting(scene, "a")})
    told = command("sessions", "destroy", session, "--yes", "--config", str(a.config_path)).stdout
    assert "a rival may take it 0.001 s after the destroy (the lock-delay)" in told
    assert ("or once the wait by the tenure record is over\n" in told) is (flags == LONG_FLAGS)
