"""The events of a node are known after a restart, a crash or damage, and while no daemon runs."""

import json
import os
import signal
import time
from pathlib import Path
from typing import Any

import pytest

from supervisor.adapters.journal.event_file import NEWER
from tests.consul.elections.scene import Scene
from tests.support.hung import hung, needs_root
from tests.support.supervisor import Supervisor, command, until

pytestmark = pytest.mark.long

WHY = "disk swap: ä $(x)"


def place(node: Supervisor) -> tuple[str, str, str, str]:
    return "--socket", str(node.folder / "control.sock"), "--config", str(node.config_path)


def operate(node: Supervisor, *words: str) -> tuple[int, str, str]:
    done = command(*words, *place(node), environ=node.places)
    return done.returncode, done.stdout, done.stderr


def events(node: Supervisor, *words: str) -> list[dict[str, Any]]:
    """Return the events that the command prints as JSON."""
    code, out, error = operate(node, "events", "--json", *words)
    assert code == 0, error
    document = json.loads(out)
    assert document["version"] == 1
    return list(document["events"])


def told(found: list[dict[str, Any]]) -> list[str]:
    """Return two words for each event."""
    by_event = {"role": "role", "hook-succeeded": "hook", "hook-failed": "hook", "command-received": "verb"}
    return [f"{each['event']} {each.get(by_event.get(each['event'], ''), '')}".strip() for each in found]


def without_changes(found: list[dict[str, Any]]) -> list[dict[str, Any]]:
    kinds = ("change", "leader-changed")
    return [each for each in found if each.get("event_kind") not in kinds and each["event"] not in kinds]


def leaders(node: Supervisor) -> list[tuple[str, str]]:
    """Return who led before, and who led then, for each change that the node has seen."""
    found = [each for each in events(node) if each["event"] == "leader-changed"]
    return [(each.get("from", ""), each["to"]) for each in found]


def test_a_survivor_says_who_led_before_also_after_its_restart(scene: Scene) -> None:
    scene.restarts = True
    scene.node("a", value='{"Node": "n1"}').wait_line("role", role="holding")
    b = scene.node("b", value='{"Node": "n2"}')
    b.wait_line("started")
    until(lambda: leaders(b) == [("", "n1")], "b has seen a")
    scene.kill("a")
    until(lambda: leaders(b) == [("", "n1"), ("n1", "n2")], "b has seen the change")
    assert "n2 leads, after n1 since 2" in operate(b, "events", scene.name)[1]
    assert b.stop() == 0
    b.start()
    until(lambda: len(b.lines("started")) == 2, "b runs again")
    until(lambda: len(leaders(b)) == 3, "b has acquired anew")
    assert leaders(b)[-1] == ("n2", "n2")
    assert b.status()["items"][0]["last_leader"]["node"] == "n2"


def test_a_step_down_is_told_with_its_reason_and_its_giver(scene: Scene) -> None:
    notes = scene.folder / "notes"
    lose = scene.hook("a", "lose", f'printf %s "$CONSUL_SUPERVISOR_NOTE" >{notes}; cat >{notes}.json')
    a = scene.leader("a", on_lose=[lose])
    scene.waiter("b")
    code, out, error = operate(a, "step-down", scene.name, "--reason", WHY)
    assert (code, error) == (0, "")
    assert out.startswith(f"{scene.name}: b holds it, ") and out.endswith(" s after this node released it\n")
    assert notes.read_text() == WHY and json.loads(Path(f"{notes}.json").read_text())["note"] == WHY
    user: dict[str, Any] = {"uid": os.geteuid(), "note": WHY}
    for name in ("command-received", "command"):
        assert a.wait_line(name, verb="step-down", item=scene.name, **user)
    assert a.wait_line("role", role="losing")["note"] == WHY
    (item,) = a.status()["items"]
    assert item["command"].items() >= {**user, "verb": "step-down"}.items()
    assert any(f"({WHY})" in warning for warning in item["warnings"])
    found = without_changes(events(a, scene.name, "--since", "1h"))
    assert told(found) == [
        "role acquiring", "hook-succeeded on_acquire[0]", "role holding", "command-received step-down",
        "role losing", "hook-succeeded on_lose[0]", "role resting",
    ]  # fmt: skip
    losing, lost = found[4], found[5]
    assert (losing["former_role"], losing["reason"], losing["note"]) == ("holding", "step-down", WHY)
    assert losing["token"] == found[0]["token"] > 0 and lost["duration_s"] > 0
    assert events(a, scene.name, "--since", "0.0s") == []
    printed = operate(a, "events", scene.name)[1]
    assert f"losing (step-down), was holding: {WHY}, token {losing['token']}\n" in printed
    code, _, error = operate(a, "events", "nothing")
    assert code == 2 and "no such election or semaphore" in error


def test_events_and_transitions_are_there_after_a_stop_and_after_a_kill(scene: Scene) -> None:
    scene.restarts = True
    a = scene.leader("a")
    assert operate(a, "pause", scene.name, "--reason", WHY)[0] == 0
    assert a.stop() == 0
    before = events(a)
    assert told(before)[-1] == "stopped" and before[-1]["clean"] is True
    assert "these events are those that it left" in operate(a, "events")[2]
    a.start()
    until(lambda: len(a.lines("started")) == 2, "it runs again")
    until(lambda: a.status()["items"][0]["transitions"], "the former transitions")
    assert events(a)[: len(before)] == before
    (item,) = a.status()["items"]
    assert [(each["event"], each["reason"]) for each in item["transitions"] if each["event"] != "change"] == [
        ("lose", "shutdown"),
        ("acquire", "acquired"),
    ]
    assert all(each["duration_s"] is not None for each in item["transitions"])
    assert item["command"]["note"] == WHY and any(WHY in warning for warning in item["warnings"])
    assert operate(a, "resume", scene.name)[1] == f"{scene.name}: its pause has ended\n"
    a.wait_line("role", role="holding", former_role="acquiring")
    until(lambda: len(a.lines("role", role="holding")) == 2, "it holds")
    until(lambda: told(without_changes(events(a)))[-1] == "role holding", "its events")
    before = events(a)
    time.sleep(0.3)  # longer than the delay of a write
    scene.kill("a")
    assert events(a) == before
    a.start()
    until(lambda: len(a.lines("started")) == 3, "it runs again")
    until(lambda: len(events(a)) > len(before), "the events of before")
    assert events(a)[: len(before)] == before


@needs_root
def test_events_on_a_file_system_that_hangs_delay_nothing(scene: Scene) -> None:
    a = scene.leader("a")
    b = scene.waiter("b")
    with hung(a.state_dir):
        for _ in range(20):
            assert command("holds", scene.name, *place(a)).returncode == 0
            a.signal(signal.SIGHUP)  # some events of its own
        assert operate(a, "recover", scene.name)[0] == 1  # an event that is written
        assert not a.lines("events-failed") and not a.lines("event-loop-stalled")
    assert b.stop() == 0
    assert any(each["event"] == "command" for each in events(a))


def test_a_status_that_is_not_healthy_can_be_an_exit_code(scene: Scene) -> None:
    a = scene.leader("a", on_lose=[scene.hook("a", "lose", "test -e /nowhere")])
    assert operate(a, "status", "--exit-code")[0] == 0
    scene.agent.session_destroy(scene.session_of("a"))
    a.wait_line("role", role="stuck")
    code, out, _ = operate(a, "status", "--exit-code")
    assert code == 1 and "NOT HEALTHY" in out
    assert operate(a, "status")[0] == 0
    assert operate(a, "recover", scene.name)[1] == f"{scene.name}: recovered; its lock is being released\n"
    scene.excuse("a")


def test_what_another_user_may_not_read_is_said(tmp_path: Path) -> None:
    """An operator without a daemon and without events gets the daemon's own error."""
    config = tmp_path / "c.yaml"
    config.write_text(f"state_dir: {tmp_path}/state\ncontrol_socket: {tmp_path}/c.sock\n")
    done = command("events", "--config", str(config))
    assert done.returncode == 69 and done.stderr.count("\n") == 1 and "no such file" in done.stderr
    (tmp_path / "state").mkdir()
    (tmp_path / "state" / NEWER).mkdir()
    done = command("events", "--config", str(config))
    assert done.returncode == 69 and f"cannot read the events in {tmp_path}/state" in done.stderr
    done = command("events", "--socket", str(tmp_path / "c.sock"))
    assert done.returncode == 69 and "cannot read" not in done.stderr
