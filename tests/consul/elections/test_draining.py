"""A node is drained for a patch, and comes back, by two commands."""

import subprocess
from typing import Any

import pytest

from tests.consul.elections.scene import Scene
from tests.consul.elections.test_events import operate, place
from tests.support.candidates import candidate_elsewhere
from tests.support.captured import captured
from tests.support.supervisor import COMMAND, Supervisor, until


def shared(scene: Scene) -> dict[str, str]:
    """Return the name that the sessions of all nodes have, by which they know their candidates."""
    return {"name": f"{scene.name}-shared"}


def waiter(scene: Scene, **how: Any) -> Supervisor:
    """Start a node that waits, and return it once Consul shows its session."""
    node = scene.node("b", session=shared(scene), **how)
    until(lambda: len(scene.sessions()) == 2, "its session")
    return node


def test_a_node_is_drained_only_where_another_takes_over_and_comes_back(scene: Scene) -> None:
    a = scene.leader("a", session=shared(scene))
    b = waiter(scene)
    code, out, error = operate(a, "drain")
    assert (code, out) == (1, ""), "what waits is on this node as well"
    assert f"cannot drain: as far as Consul shows, no other node would take over {scene.name}; " in error
    assert not a.lines("command-received"), "nothing was done"
    with candidate_elsewhere(scene.agent, shared(scene)["name"]):
        code, out, error = operate(a, "drain", "--reason", "kernel update")
        assert (code, error) == (0, "")
        assert "paused until resume; it holds until" in out and f"{scene.name}: b holds it, " in out
        assert a.wait_line("role", role="losing")["note"] == "kernel update"
        assert operate(a, "drain", "--quiet") == (0, "", ""), "it is drained already"
        assert operate(a, "undrain", "--wait", "20s", "--quiet") == (0, "", "")
        a.wait_line("role", role="waiting", former_role="paused")
        assert operate(b, "drain", "--quiet") == (0, "", "")
        scene.wait_leader(but="b")


@pytest.mark.long
def test_a_node_that_cannot_end_its_application_is_not_called_drained(scene: Scene) -> None:
    a = scene.leader("a", session=shared(scene), on_lose=[scene.hook("a", "lose", "test -e /nowhere")])
    waiter(scene)
    code, _, error = operate(a, "drain", "--force")
    assert code == 1 and "it is stuck" in error
    code, _, error = operate(a, "undrain", "--wait", "1s")
    assert code == 1 and f"{scene.name} is stuck" in error
    assert operate(a, "recover", scene.name)[0] == 0
    scene.wait_leader(but="a")


@pytest.mark.long
def test_a_node_that_has_just_booted_is_waited_for(scene: Scene) -> None:
    scene.restarts = True
    a = scene.leader("a", session=shared(scene))
    assert a.stop() == 0
    argv = [*COMMAND, "undrain", "--quiet", "--socket", str(a.folder / "control.sock")]
    assert captured(argv, timeout=60).returncode == 69
    with subprocess.Popen([*argv, "--wait", "60s"]) as waits:
        a.start()
        assert waits.wait(60) == 0


@pytest.mark.long
def test_a_file_that_does_not_declare_what_is_held_is_no_word_of_consul(scene: Scene) -> None:
    a = scene.leader("a", session=shared(scene))
    a.rewrite({"elections": {"other": {}}})
    code, _, error = operate(a, "drain")
    assert code == 1 and f"does not declare {scene.name}, so Consul cannot be asked" in error


@pytest.mark.long
def test_a_loss_that_is_under_way_is_waited_for(scene: Scene) -> None:
    a = scene.leader("a", session=shared(scene), on_lose=[scene.hook("a", "lose", "sleep 0.5")])
    waiter(scene)
    scene.agent.session_destroy(held_by(scene))
    a.wait_line("role", role="losing")
    assert operate(a, "drain", "--quiet") == (0, "", "")
    assert a.wait_line("role", role="paused")


def held_by(scene: Scene) -> str:
    entry = scene.agent.kv_get(scene.key)
    return "" if entry is None else str(entry["Session"])


@pytest.mark.long
def test_a_pause_with_an_end_outlasts_a_restart_and_ends_by_itself(scene: Scene) -> None:
    scene.restarts = True
    a = scene.leader("a", session=shared(scene))
    waiter(scene)
    code, out, _ = operate(a, "pause", scene.name, "--for", "4s")
    assert code == 0 and "paused until 20" in out and "; it holds until step-down or a loss" in out
    item = a.item()
    assert item["paused_until"] and " or resume" in " ".join(item["warnings"])
    assert a.stop() == 0
    a.start()
    a.wait_line("role", role="paused")
    assert a.wait_line("pause-over")["item"] == scene.name
    a.wait_line("role", role="waiting", former_role="paused")
    assert not a.item()["paused_until"]
    assert operate(a, "pause", scene.name)[0] == operate(a, "drain", "--for", "1s", "--quiet")[0] == 0
    assert a.item()["paused_until"] is None, "a drain does not shorten the pause of another"


@pytest.mark.long
def test_all_that_a_node_holds_is_handed_over_at_the_same_time(scene: Scene) -> None:
    a = scene.leader("a", session=shared(scene), on_lose=[scene.hook("a", "lose", "sleep 0.3")])
    waiter(scene)
    assert operate(a, "step-down", "--all", "--to", "b")[0] == 2
    code, out, error = operate(a, "step-down", "--all", "--for", "1s", "--reason", "for a test")
    assert (code, error) == (0, "") and f"{scene.name}: b holds it, " in out
    assert operate(a, "step-down", "--all") == (0, "this node holds nothing\n", "")


@pytest.mark.long
def test_a_candidate_is_waited_for(scene: Scene) -> None:
    a = scene.leader("a", session=shared(scene))
    wait = ("wait", scene.name, "--for", "candidate")
    code, _, error = operate(a, *wait, "--timeout", "0s")
    assert code == 1 and f"{scene.name}: no node waits for it, also after 0 s" in error
    with subprocess.Popen([*COMMAND, *wait, "--timeout", "60s", *place(a)]) as waits:
        waiter(scene)
        assert waits.wait(60) == 0


@pytest.mark.long
def test_a_manual_node_leads_by_an_operators_word_alone(scene: Scene) -> None:
    scene.restarts = True
    a = scene.leader("a", session=shared(scene))
    b = waiter(scene, contend="manual")
    b.wait_line("leader-changed")
    assert f"resume {scene.name}` lets it" in " ".join(b.item()["warnings"])
    assert a.stop() == 0
    b.wait_line("request", kind="read session")
    assert b.item()["session"] and held_by(scene) == "", "nobody leads, and b waits for a word"
    code, out, _ = operate(b, "resume", scene.name)
    assert code == 0 and "it tries until the end of its next tenure" in out
    scene.wait_leader(but="a")
    a.start()
    until(lambda: len(scene.sessions()) == 2, "its session")
    former = held_by(scene)
    assert operate(b, "step-down", scene.name, "--for", "0s")[0] == 0
    b.wait_line("role", role="waiting", former_role="losing")
    to = until(
        lambda: b.item()["session"] not in (former, None, "") and b.item()["session"], "its next session"
    )
    until(lambda: to in {each["ID"] for each in scene.sessions()}, "that session")
    until(lambda: a.item()["role"] == "holding", "a holds")
    assert operate(a, "step-down", scene.name, "--to", str(to))[:3:2] == (0, "")
    scene.wait_leader(but="a")


@pytest.mark.long
def test_force_drains_the_last_node_and_says_that_nobody_took_over(scene: Scene) -> None:
    a = scene.leader("a", session=shared(scene))
    code, _, error = operate(a, "drain", "--force")
    assert code == 1 and "released, but nobody took over within 10 s" in error
    code, _, error = operate(a, "undrain", "--wait", "0s")
    assert code == 0 or f"not yet after 0 s: {scene.name} is " in error
    assert operate(a, "undrain", "--wait", "30s", "--quiet")[0] == 0
    scene.wait_leader()
