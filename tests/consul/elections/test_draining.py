"""A node is drained for a patch, and comes back, by two commands."""

import socket
import socketserver
import subprocess
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.consul.conftest import MakeScene
from tests.consul.elections.scene import Scene
from tests.consul.elections.test_events import operate, place
from tests.support.candidates import candidate_elsewhere
from tests.support.captured import captured
from tests.support.guarded import Guarded, write
from tests.support.supervisor import COMMAND, Supervisor, command, until


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
        assert "paused until undrain; it holds until" in out and f"{scene.name}: b holds it, " in out
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
    assert f"{scene.name}  its pause is over\n" in operate(a, "events")[1]
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


def test_undrain_ends_what_drain_has_paused_and_no_pause_of_another(scene: Scene) -> None:
    scene.restarts = True
    scene.leader("a", session=shared(scene))
    b = waiter(scene)
    assert operate(b, "pause", scene.name, "--reason", "the disk is out")[0] == 0
    assert operate(b, "drain", "--for", "1h", "--reason", "nightly patch", "--quiet") == (0, "", "")
    [warning] = b.item()["warnings"]
    assert "(the disk is out)" in warning and not b.item()["drained"], "the longer one is in force"
    assert b.stop() == 0
    b.start()
    code, out, error = operate(b, "undrain", "--wait", "30s")
    assert (code, error) == (0, "") and out.startswith(f"{scene.name}: stays paused by "), out
    assert "(the disk is out)" in out and b.item()["role"] == "paused"
    out = operate(b, "pause", scene.name, "--for", "1h", "--reason", "night shift")[1]
    assert "in place of the pause by " in out and "(the disk is out)" in out
    out = operate(b, "drain", "--reason", "nightly patch")[1]
    assert "paused until undrain" in out and b.item()["drained"]
    own, drains = b.item()["warnings"]
    assert "(night shift)" in own and "by drain of " in drains and drains.endswith("until undrain")
    b.kill()
    b.start()
    assert "(night shift)" in operate(b, "undrain", "--wait", "30s")[1] and b.item()["paused_until"]
    assert operate(b, "drain", "--quiet")[0] == 0
    assert operate(b, "resume", "--all")[1] == f"{scene.name}: its pause and its drain has ended\n"
    assert operate(b, "drain", "--quiet")[0] == 0
    assert operate(b, "undrain")[1] == f"{scene.name}: its drain has ended\n"
    assert {each["verb"] for each in b.lines("command-received")} == {"pause", "drain", "undrain", "resume"}


def test_two_drains_at_once_do_not_leave_nobody(scene: Scene) -> None:
    a = scene.leader("a", session=shared(scene), on_lose=[scene.hook("a", "lose", "sleep 0.7")])
    b = waiter(scene)
    with candidate_elsewhere(scene.agent, shared(scene)["name"]):
        argv = [*COMMAND, "drain", "--reason", "kernel", *place(a)]
        with subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as drains:
            a.wait_line("role", role="losing")
            code, _, error = operate(b, "drain")
            assert code == 0 and "warning" not in error, "there is a third node"
            out, error = drains.communicate(timeout=60)
    assert f"{scene.name}: another node waits; whether for an operator's word (contend: manual)" in out
    assert drains.returncode == 1 and "nobody took over; so this node contends again" in error
    scene.wait_leader()
    assert not a.item()["paused"]


@pytest.mark.long
def test_a_drain_that_is_ended_meanwhile_is_no_success(scene: Scene) -> None:
    a = scene.leader("a", session=shared(scene), on_lose=[scene.hook("a", "lose", "sleep 0.7")])
    waiter(scene)
    with candidate_elsewhere(scene.agent, shared(scene)["name"]):
        with subprocess.Popen([*COMMAND, "drain", *place(a)], stderr=subprocess.PIPE, text=True) as drains:
            a.wait_line("role", role="losing")
            assert operate(a, "undrain")[0] == 0
            error = drains.communicate(timeout=60)[1]
    assert drains.returncode == 1 and f"it contends for {scene.name}" in error, error


def test_a_candidate_that_goes_before_the_release_is_missed_in_time(scene: Scene) -> None:
    a = scene.leader("a", session=shared(scene))
    b = waiter(scene)
    with ExitStack() as elsewhere:
        elsewhere.enter_context(candidate_elsewhere(scene.agent, shared(scene)["name"]))
        path = a.folder / "relay.sock"
        with relay(path, a.folder / "control.sock", "/v1/drain", elsewhere.close):
            argv = ["drain", "--socket", str(path), "--config", str(a.config_path)]
            done = command(*argv, environ=a.places)
    assert done.returncode == 1 and "so this node contends again" in done.stderr, done.stderr
    assert not a.lines("role", role="losing") and not a.item()["paused"]
    code, _, error = operate(b, "drain")
    assert code == 0 and f"only this node waits for {scene.name}; to see all nodes" in error


@pytest.mark.long
def test_the_right_that_drain_lacks_is_named_and_policy_prints_it(
    guarded: Guarded, make_scene: MakeScene[Scene]
) -> None:
    with make_scene(guarded) as scene:
        made = guarded.token_of(write(scene.key) + guarded.sessions_rule())
        a = scene.leader("a", session=shared(scene), environ={"CONSUL_HTTP_TOKEN": made.secret})
        with candidate_elsewhere(guarded, shared(scene)["name"]):
            own = {**a.places, "CONSUL_HTTP_TOKEN": made.secret}
            done = command("drain", *place(a), environ=own)
            lacks = 'give the token: session_prefix "" { policy = "read" }; --force'
            assert done.returncode == 1 and lacks in done.stderr, done.stderr
            rules = command("policy", str(a.config_path), "--for", "drain").stdout
            environ = {**a.places, "CONSUL_HTTP_TOKEN": guarded.token_of(rules).secret}
            done = command("drain", *place(a), environ=environ)
            assert done.returncode == 1 and "nobody took over" in done.stderr, "the candidate is a dummy"
        scene.wait_leader()


@contextmanager
def relay(path: Path, to: Path, target: str, at: Callable[[], None]) -> Iterator[None]:
    """Pass requests on to another socket, and do something when one for this target has been answered."""

    class Handler(socketserver.BaseRequestHandler):
        def handle(self) -> None:
            asked = self.request.recv(65536)
            with socket.socket(socket.AF_UNIX) as daemon:
                daemon.connect(str(to))
                daemon.sendall(asked.replace(b"\r\nHost", b"\r\nConnection: close\r\nHost", 1))
                answer = b"".join(iter(lambda: daemon.recv(65536), b""))
            if f" {target} ".encode() in asked:
                at()
            self.request.sendall(answer)

    with socketserver.ThreadingUnixStreamServer(str(path), Handler) as server:
        threading.Thread(target=server.serve_forever, args=(0.05,)).start()
        yield
        server.shutdown()
