"""Hooks that cannot start on this machine: they are found before they are needed.

Each is reported with a remedy, and the report ends when the operator has mended the hook.
"""

import json
import os
import shutil
import signal
from pathlib import Path

import pytest

from tests.consul.elections.scene import Scene
from tests.support.supervisor import Supervisor, command, until

as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root runs hooks as another user")
TRUE = shutil.which("true")


def status(node: Supervisor) -> dict[str, object]:
    done = command("status", "--json", "--socket", str(node.folder / "control.sock"))
    told: dict[str, object] = json.loads(done.stdout)
    return told


def only_item(told: dict[str, object]) -> dict[str, object]:
    items = told["items"]
    assert isinstance(items, list)
    (item,) = items
    assert isinstance(item, dict)
    return item


def hurry(node: Supervisor) -> None:
    """Reload the file, so that its hooks are checked now."""
    node.signal(signal.SIGHUP)


@pytest.mark.long
@as_root
def test_a_typo_or_an_unknown_user_keeps_a_node_ineligible_until_both_are_mended(
    scene: Scene, tmp_path: Path
) -> None:
    demote = tmp_path / "demote"
    lose = {"exec": [str(demote)], "timeout": "900ms", "kill_after": "100ms"}
    acquire = {"exec": ["true"], "user": "no-such-user", "kill_after": "100ms"}
    a = scene.node("a", on_lose=[lose], on_acquire=[acquire])
    told = a.wait_line("hook-cannot-start", hook="on_lose[0]")
    assert told["level"] == "error" and told["effect"] == "this node does not contend"
    assert told["why"] == f"no such program: {demote}" and "install it" in told["remedy"]
    assert a.wait_line("hook-cannot-start", hook="on_acquire[0]")["why"] == "unknown user 'no-such-user'"
    a.wait_line("role", role="ineligible")
    item = only_item(status(a))
    assert f"on_lose[0] cannot start: no such program: {demote}: install it, or correct the path" in str(
        item["warnings"]
    )
    assert "cannot start" in str(item["last_error"])
    a.rewrite(scene.config({scene.name: scene.item("a", on_lose=[lose])}))
    hurry(a)
    until(lambda: len(a.lines("hook-cannot-start")) >= 3, "the file is looked at again")
    assert not a.lines("role", role="holding") and not scene.records(event="acquire")
    assert TRUE is not None
    demote.symlink_to(TRUE)
    a.wait_line("hooks-can-start")  # the supervisor checks by itself some ten seconds later
    a.wait_line("role", role="holding")
    scene.excuse("a")  # this on_lose records nothing
    assert a.stop() == 0
