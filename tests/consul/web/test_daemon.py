"""A real supervisor on a real Consul, read over TCP and on its control socket."""

import http.client
import json
import os
import re
import socket
from pathlib import Path

import pytest

from tests.consul.elections.scene import Scene
from tests.consul.web.reader import Reader, Told, told
from tests.support.programs import script
from tests.support.supervisor import PATIENCE_S, Supervisor, until

TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z")


def test_one_node_holds_the_other_does_not_and_both_report_it_at_once(scene: Scene) -> None:
    """GET, HEAD and OPTIONS agree, over TCP and on the control socket; the body says why."""
    a, b = Reader(scene.leader("a")), Reader(scene.waiter("b"))
    for ask in (a.ask, a.ask_socket):
        found = ask(f"/leader/{scene.name}")
        assert (found.status, found.body) == (200, f"{scene.name}: holding\n")
        assert found.headers["cache-control"] == "no-store"
    assert b.ask(f"/leader/{scene.name}").body == f"{scene.name}: waiting\n"
    for path in ("leader", "holder"):
        for method in ("GET", "HEAD", "OPTIONS"):
            assert a.ask(f"/{path}/{scene.name}", method).status == 200
            assert b.ask(f"/{path}/{scene.name}", method).status == 503
            assert b.ask(f"/{path}/{scene.name}?check=1", method).status == 503
            assert a.ask(f"/{path}/none", method).status == a.ask(f"/{path}/", method).status == 404
    assert a.ask(f"/leader/{scene.name}", "HEAD").body == ""


@pytest.mark.long
def test_a_node_that_acquires_or_loses_does_not_hold(scene: Scene, tmp_path: Path) -> None:
    body = f"until [ -e {tmp_path}/on ]; do sleep 0.02; done"
    lose = [scene.hook("a", "lose", body, timeout="9s")]
    acquire = [scene.hook("a", "acquire", body)]
    node = scene.node("a", on_acquire=acquire, on_lose=lose, session={"lock_delay": "30s"})
    reader = Reader(node)
    node.wait_line("role", role="acquiring")
    found = reader.ask(f"/leader/{scene.name}")
    assert (found.status, found.body) == (503, f"{scene.name}: acquiring, on_acquire has not finished\n")
    item = reader.item(scene.name)
    assert (item["role"], item["holds"]) == ("acquiring", False)
    (acquired,) = [each for each in item["transitions"] if each["event"] == "acquire"]
    assert acquired["duration_s"] is None and acquired["hooks"][0]["result"] == "running"
    (tmp_path / "on").touch()
    node.wait_line("role", role="holding")
    assert reader.ask(f"/leader/{scene.name}").status == 200
    (tmp_path / "on").unlink()
    scene.agent.session_destroy(scene.session_of("a"))
    node.wait_line("hook-started", event_kind="lose")
    found = reader.ask(f"/leader/{scene.name}")
    assert (found.status, found.body) == (503, f"{scene.name}: losing\n")
    (tmp_path / "on").touch()


@pytest.mark.long
def test_the_lease_runs_down_in_silence_and_then_health_is_red(own_scene: Scene) -> None:
    """Health stays red after on_lose has ended, until Consul answers again."""
    scene = own_scene
    node = scene.leader("a")
    reader = Reader(node)
    scene.agent.freeze()
    until(lambda: reader.item(scene.name)["lease_left_s"] is None, "the lease runs out")
    assert reader.ask(f"/leader/{scene.name}").status == 503
    assert "Consul did not answer" in reader.ask("/healthz").json["troubles"][0]
    scene.wait(node="a", event="lose", stage="end")
    found = reader.ask("/healthz")
    assert found.status == 503 and found.json["healthy"] is False
    item = reader.item(scene.name)
    assert [each["reason"] for each in item["transitions"] if each["event"] == "lose"] == ["lease-expired"]
    assert item["last_error"]["text"].startswith("Consul does not answer: ")
    scene.agent.thaw()
    scene.agent.wait_ready()
    until(lambda: reader.ask("/healthz").status == 200, "it is healthy again")


def test_over_tcp_nothing_can_be_changed(scene: Scene) -> None:
    """Commands exist on the control socket only, whatever the path."""
    reader = Reader(scene.leader("a"))
    for method in ("POST", "PUT", "DELETE", "PATCH", "TRACE"):
        for target in (
            f"/v1/pause/{scene.name}",
            "/v1/pause",
            f"/leader/{scene.name}",
            "/v1/status",
            "/none",
        ):
            found = reader.ask(target, method)
            assert (found.status, found.headers["allow"]) == (405, "GET, HEAD, OPTIONS"), (method, target)
    assert reader.ask(f"/v1/pause/{scene.name}").status == 404
    assert reader.item(scene.name)["paused"] is False
    assert reader.ask_socket(f"/v1/pause/{scene.name}").status == 405


def test_a_name_that_another_site_let_lead_here_reads_nothing(scene: Scene, tmp_path: Path) -> None:
    """The names of load balancers and of Prometheus are in no list, so what these read is open to any."""
    bin_ = tmp_path / "bin"
    bin_.mkdir()
    script(bin_ / "getent", 'echo "127.0.1.1 STREAM Node.Example.Org"; echo "127.0.1.1 DGRAM"')
    config = scene.config({scene.name: scene.item("a")})
    config["http"] = {"listen": "127.0.0.1:0", "public_url": "http://Status.example.org:8555/"}
    search = {"PATH": f"{bin_}:{os.environ['PATH']}"}
    node = scene.nodes["a"] = Supervisor(scene.folder / "a", config, environ=search)
    node.start()
    reader, name = Reader(node), socket.gethostname()
    until(lambda: reader.ask("/", host="node.example.org").status == 200, "the full name is known")
    ours = ["localhost", "LOCALHOST.:8555", name, f"{name.upper()}:80", "status.example.org", "127.0.0.1"]
    ours += ["10.1.2.3:8555", "[::1]:8555", "[fe80::1%25eth0]", "[::ffff:127.0.0.1]:1", ""]
    theirs = ["evil.example", f"{name}.evil.example", "localhost.evil.example:8555", "127.0.0.1.evil.example"]
    theirs += ["a localhost", "[::1].evil.example", "[evil]", "example.org", "@", "127.0.0.1:8555:evil"]
    for path in ("/", "/v1/status", "/v1/events", "/v1/fleet", "/v1/status?leader/"):
        assert {host: reader.ask(path, host=host).status for host in ours} == dict.fromkeys(ours, 200)
        assert {host: reader.ask(path, host=host).status for host in theirs} == dict.fromkeys(theirs, 421)
    refused = reader.ask("/v1/status", host="evil.example")
    assert refused.headers["content-type"].startswith("text/plain") and "http.public_url" in refused.body
    for path in (f"/leader/{scene.name}", f"/holder/{scene.name}", "/healthz", "/metrics"):
        assert all(reader.ask(path, host=host).status != 421 for host in theirs)
    assert reader.ask_socket("/v1/status", host="evil.example").status == 200, "no page reaches a socket"
    with socket.create_connection(("127.0.0.1", reader.port)) as old:
        old.sendall(b"GET /v1/status HTTP/1.0\r\nX-Forwarded-Host: evil.example\r\n\r\n")
        assert old.recv(64).startswith(b"HTTP/1.1 200 "), "a check without a name"
    changed = {**config, "http": {"listen": "127.0.0.1:0", "public_url": "http://new.example.org/"}}
    node.config_path.write_text(json.dumps(changed))
    assert reader.ask_socket("/v1/reload", "POST").status == 200
    assert [reader.ask("/", host=f"{each}.example.org").status for each in ("status", "new")] == [421, 200]


@pytest.mark.long
def test_a_port_that_is_taken_costs_no_leadership_and_is_taken_when_it_is_free(scene: Scene) -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        config = {**scene.config({scene.name: scene.item("a")}), "http": {"listen": f"127.0.0.1:{port}"}}
        node = scene.nodes["a"] = Supervisor(scene.folder / "a", config)
        node.start()
        why = node.wait_line("http", level="error")["why"]
        assert why == f"cannot listen on 127.0.0.1:{port}: Address already in use; trying again"
        node.wait_line("role", role="holding")
    assert Reader(node).ask(f"/leader/{scene.name}").status == 200


def test_a_reload_changes_the_served_items_and_moves_the_listener(scene: Scene) -> None:
    node = scene.leader("a")
    reader = Reader(node)
    observed = {"contend": False, "key": f"{scene.name}/new"}
    config = scene.config({scene.name: scene.election("a"), "new": observed})
    node.config_path.write_text(json.dumps(config))
    assert reader.ask_socket("/v1/reload", "POST").status == 200
    assert [each["name"] for each in reader.status()["items"]] == [scene.name, "new"]
    assert reader.item("new")["since"] > reader.status()["daemon"]["started"]
    assert reader.ask("/leader/new").status == 503 and reader.ask(f"/leader/{scene.name}").status == 200
    node.config_path.write_text(json.dumps(scene.config({scene.name: scene.election("a")})))
    assert reader.ask_socket("/v1/reload", "POST").status == 200
    until(lambda: reader.ask("/leader/new").status == 404, "it is gone")
    node.config_path.write_text(json.dumps({**config, "http": {"listen": "127.0.0.2:0"}}))
    former = reader.port
    assert reader.ask_socket("/v1/reload", "POST").status == 200
    moved = until(lambda: [each for each in node.lines("http") if "127.0.0.2" in each["why"]], "it moves")
    connection = http.client.HTTPConnection(
        "127.0.0.2", int(moved[0]["why"].rpartition(":")[2]), timeout=PATIENCE_S
    )
    assert told(connection, f"/leader/{scene.name}", "GET").status == 200
    with pytest.raises(ConnectionRefusedError):
        told(http.client.HTTPConnection("127.0.0.1", former, timeout=PATIENCE_S), "/healthz", "GET")
    assert scene.calls("a") == ["acquire acquired"]


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can be somebody else")
def test_another_user_reads_nothing_on_the_control_socket(scene: Scene) -> None:
    """The mode of the socket may let any user connect."""
    node = scene.leader("a")
    path = node.folder / "control.sock"
    path.chmod(0o666)
    for folder in (path.parent, *path.parents):
        if str(folder).startswith("/tmp/"):
            folder.chmod(folder.stat().st_mode | 0o011)
    found = as_nobody(node)
    assert found.status == 403 and found.json["error"].startswith("cannot take commands from user id 65534")


def as_nobody(node: Supervisor) -> Told:
    os.seteuid(65534)
    try:
        return Reader(node).ask_socket("/v1/status")
    finally:
        os.seteuid(0)
