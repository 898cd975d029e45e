"""The effects of hooks: failures, retries, the run child, and the order of it all."""

import shutil
import signal
from pathlib import Path

import pytest

from tests.consul.elections.scene import TTL, Scene
from tests.support.hung import needs_root
from tests.support.supervisor import until
from tests.support.turns import first_now

TRUE = shutil.which("true")
SLOW_TO_STOP = "trap 'sleep 0.3; exit 0' TERM; sleep 600 & wait"
ROOM_FOR_RUN = {"lock_delay": "6s"}


def order(scene: Scene, node: str) -> list[str]:
    """List ``STAGE LABEL`` of all hooks and run children of this node, except on_change."""
    return [f"{r.stage} {r.hook}" for r in scene.records(node=node) if r.hook != "change"]


@pytest.mark.long
def test_a_node_whose_on_acquire_fails_hands_over_and_waits_before_its_next_attempt(
    scene: Scene, tmp_path: Path
) -> None:
    """on_acquire stops at its first failure, and on_lose undoes the finished hooks."""
    body = f"until [ -e {tmp_path}/fail ]; do sleep 0.02; done; exit 3"
    hooks = [scene.hook("a", "acquire", body), scene.hook("a", "acquire-2")]
    scene.node("a", on_acquire=hooks, rejoin_delay="2s")
    scene.wait(node="a", event="acquire", stage="begin")
    b = scene.waiter("b")
    (tmp_path / "fail").touch()
    lost = scene.wait(node="a", event="lose", stage="end")
    assert scene.wait_leader() == "b"
    assert order(scene, "a") == ["begin acquire", "end acquire", "begin lose", "end lose"]
    assert scene.calls("a") == ["acquire acquired", "lose acquire-failed"]
    assert b.stop() == 0
    again = until(lambda: scene.records(node="a", event="acquire", stage="begin")[1:], "a tries again")[0]
    assert again.at >= lost.at + 2.0 - 0.02


def test_the_run_child_lives_between_on_acquire_and_on_lose(scene: Scene) -> None:
    run = scene.run("a", SLOW_TO_STOP)
    a = scene.node("a", run=run, session=ROOM_FOR_RUN)
    scene.wait(node="a", hook="run", stage="begin")
    assert a.stop() == 0
    assert order(scene, "a") == [
        "begin acquire", "end acquire", "begin run", "end run", "begin lose", "end lose",
    ]  # fmt: skip


def test_a_failed_on_lose_goes_to_the_last_resort_and_the_lock_is_free_after_it(scene: Scene) -> None:
    """All hooks of on_lose run although the first fails, and then on_lose_failure runs."""
    hooks = [scene.hook("a", "lose", "exit 1", timeout="5s"), scene.hook("a", "lose-2", timeout="5s")]
    resort = [scene.hook("a", "lose-failure", timeout="5s")]
    roomy = {"lock_delay": "30s"}
    a = scene.leader("a", on_lose=hooks, on_lose_failure=resort, session=roomy)
    assert a.stop() == 0
    ran = ["lose", "lose-2", "lose-failure"]
    assert order(scene, "a")[2:] == [f"{stage} {label}" for label in ran for stage in ("begin", "end")]
    assert scene.wait(event="lose-failure", stage="begin").reason == "lose-failed"
    scene.leader("b")


def test_an_observer_has_no_session_and_runs_on_change_for_every_leader(scene: Scene) -> None:
    observer = {"key": scene.key, "contend": False, "on_change": [scene.hook("o", "change")]}
    scene.node("o", items={scene.name: observer})
    scene.wait_told("o", "initial")
    a = scene.leader("a")
    scene.wait_told("o", "leader-changed a")
    assert a.stop() == 0
    until(lambda: scene.told("o") == ["initial", "leader-changed a", "leader-changed"], "nobody leads")
    assert not scene.sessions()
    assert scene.calls("o") == []


@pytest.mark.parametrize("session", first_now([{"ttl": "none"}, {"ttl": TTL, "lock_delay": "0s"}]))
def test_unusual_sessions_lead_and_hand_over(scene: Scene, session: dict[str, str]) -> None:
    how = {"session": session, "accept_overlap": session["ttl"] != "none"}
    a = scene.leader("a", **how)
    scene.waiter("b", **how)
    assert a.stop() == 0
    assert scene.wait_leader() == "b"


@pytest.mark.long
def test_a_node_whose_check_fails_does_not_contend_and_a_holder_steps_down(scene: Scene) -> None:
    """candidate_check: a is fit until its file is removed, b takes over, and a comes back as a waiter."""
    fit = scene.folder / "fit"
    scene.folder.mkdir(parents=True)
    fit.touch()
    check = {"exec": ["/usr/bin/test", "-e", str(fit)], "interval": "1s", "rise": 1, "fall": 2}
    a = scene.leader("a", candidate_check=check)
    scene.waiter("b")
    fit.unlink()
    assert scene.wait_leader(but="a") == "b"
    a.wait_line("role", role="ineligible")
    assert scene.calls("a") == ["acquire acquired", "lose unhealthy"]
    assert scene.nodes["b"].stop() == 0
    a.wait_line("check-failed")
    fit.touch()
    assert scene.wait_leader() == "a"
    a.wait_line("check-recovered")
    assert len(a.lines("check-failed")) == 1


def test_what_a_hook_prints_at_once_follows_the_lines_that_name_the_hook(scene: Scene) -> None:
    """The log gets the steps of a hand-over a few milliseconds late, and all of them before the end."""
    prints = [{"exec": ["/bin/echo", "done"], "timeout": "500ms", "kill_after": "500ms"}]
    a = scene.node("a", on_acquire=prints, on_lose=prints)
    a.wait_line("role", role="holding")
    assert a.stop() == 0
    hooks = ("on_acquire[0]", "on_lose[0]")
    told = [(line["event"], line["hook"]) for line in a.lines() if line.get("hook") in hooks]
    order = ("hook-started", "hook-output", "hook-succeeded")
    assert told == [(event, hook) for hook in hooks for event in order]


@pytest.mark.long
@needs_root
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
    item = a.item()
    assert f"on_lose[0] cannot start: no such program: {demote}: install it, or correct the path" in str(
        item["warnings"]
    )
    assert "cannot start" in str(item["last_error"])
    a.rewrite(scene.config({scene.name: scene.item("a", on_lose=[lose])}))
    a.signal(signal.SIGHUP)
    until(lambda: len(a.lines("hook-cannot-start")) >= 3, "the file is looked at again")
    assert not a.lines("role", role="holding") and not scene.records(event="acquire")
    assert TRUE is not None
    demote.symlink_to(TRUE)
    a.wait_line("hooks-can-start")  # the supervisor checks by itself some ten seconds later
    a.wait_line("role", role="holding")
    scene.excuse("a")  # this on_lose records nothing
    assert a.stop() == 0
