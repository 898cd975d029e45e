"""Ways to Consul: tokens that change, TLS with a client's certificate, a unix socket."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path

import pytest
import trustme

from tests.elections.scene import Scene
from tests.support.consul import Agent, free_ports

MASTER = "7b0f0e2c-3f5b-4d3a-9a51-5d1f0c6f5f10"
MakeScene = Callable[[Agent], AbstractContextManager[Scene]]
ROOMY = {"lock_delay": "20s"}


class Guarded(Agent):
    """An agent that denies by default; the test itself uses its master token."""

    def __init__(self, folder: Path) -> None:
        acl = {"enabled": True, "default_policy": "deny", "tokens": {"master": MASTER, "agent": MASTER}}
        super().__init__(folder, config={"acl": acl}, token=MASTER)

    def make_token(self, key: str) -> tuple[str, str]:
        """The accessor and secret of a token that may do what an election needs, and nothing else."""
        node = self.call("GET", "/agent/self").json()["Config"]["NodeName"]
        rules = f'key "{key}" {{ policy = "write" }}\nsession "{node}" {{ policy = "write" }}'
        policies = self.call("GET", "/acl/policies").json()
        name = f"election-{len(policies)}"
        assert self.call("PUT", "/acl/policy", {"Name": name, "Rules": rules}).status == 200
        made = self.call("PUT", "/acl/token", {"Policies": [{"Name": name}]})
        assert made.status == 200, made
        return made.json()["AccessorID"], made.json()["SecretID"]


@pytest.fixture
def guarded(tmp_path: Path) -> Iterator[Guarded]:
    with Guarded(tmp_path / "guarded") as agent:
        yield agent


@pytest.fixture
def scene(guarded: Guarded, make_scene: MakeScene) -> Iterator[Scene]:
    """Supervisors on the guarded agent."""
    with make_scene(guarded) as made:
        yield made


def test_a_token_file_that_is_corrected_is_used_without_a_restart(
    scene: Scene, guarded: Guarded, tmp_path: Path
) -> None:
    file = tmp_path / "token"
    file.write_text("11111111-2222-3333-4444-555555555555\n")
    _, secret = guarded.make_token(scene.key)
    a = scene.node("a", consul={"token_file": str(file)})
    a.wait_line("exchange-failed", kind="CreateSession")
    file.write_text(f"{secret}\n")
    a.wait_line("role", role="holding")
    assert secret not in a.log_text


def test_a_token_that_is_replaced_costs_no_leadership(scene: Scene, guarded: Guarded, tmp_path: Path) -> None:
    """403 is no answer: it is said aloud and ridden out like silence."""
    accessor, first = guarded.make_token(scene.key)
    _, second = guarded.make_token(scene.key)
    file = tmp_path / "token"
    file.write_text(first)
    a = scene.leader("a", consul={"token_file": str(file)}, session={**ROOMY, "ttl": "5s"})
    session = scene.session_of("a")
    assert guarded.call("DELETE", f"/acl/token/{accessor}").status == 200
    a.wait_line("exchange-failed", kind="RenewSession")
    assert a.wait_line("consul-denied")["level"] == "error"
    a.wait_line("exchange-failed", kind="ReadKey")
    file.write_text(second)
    a.wait_line("consul-answers", after="consul-denied")
    assert scene.session_of("a") == session
    assert a.stop() == 0
    assert scene.calls("a") == ["acquire acquired", "lose shutdown"]
    assert not [secret for secret in (first, second) if secret in a.log_text]


def test_a_token_file_that_vanishes_leaves_the_last_token_in_use(
    scene: Scene, guarded: Guarded, tmp_path: Path
) -> None:
    file = tmp_path / "token"
    file.write_text(guarded.make_token(scene.key)[1])
    a = scene.leader("a", consul={"token_file": str(file)})
    file.unlink()
    assert str(file) in a.wait_line("token-file")["why"]
    assert a.stop() == 0
    assert len(a.lines("token-file")) == 1


def test_https_with_a_client_certificate(make_scene: MakeScene, tmp_path: Path) -> None:
    """Who has the certificate leads; who has none is told so and keeps asking."""
    authority = trustme.CA()
    files = {
        name: tmp_path / f"{name}.pem" for name in ("ca", "server", "server-key", "client", "client-key")
    }
    authority.cert_pem.write_to_path(str(files["ca"]))
    for name, identity in (("server", "127.0.0.1"), ("client", "client.example")):
        certificate = authority.issue_cert(identity)
        certificate.private_key_pem.write_to_path(str(files[f"{name}-key"]))
        certificate.cert_chain_pems[0].write_to_path(str(files[name]))
    port = free_ports(1)[0]
    config = {
        "ports": {"https": port},
        "verify_incoming": True,
        "ca_file": str(files["ca"]),
        "cert_file": str(files["server"]),
        "key_file": str(files["server-key"]),
    }
    tls = {"ca_file": files["ca"], "cert_file": files["client"], "key_file": files["client-key"]}
    with Agent(tmp_path / "tls", config=config) as agent, make_scene(agent) as scene:
        address = f"https://127.0.0.1:{port}"
        a = scene.leader("a", consul={"address": address, "tls": {k: str(v) for k, v in tls.items()}})
        b = scene.node("b", consul={"address": address, "tls": {"ca_file": str(files["ca"])}})
        assert "certificate" in b.wait_line("exchange-failed", kind="CreateSession")["why"]
        scene.agent.kv_put(scene.key, b"through tls")
        scene.wait_told("a", "value-changed through tls")
        assert a.running and not b.lines("role", role="holding")


def test_a_unix_socket(make_scene: MakeScene, tmp_path: Path) -> None:
    socket = tmp_path / "http.sock"
    config = {"addresses": {"http": f"127.0.0.1 unix://{socket}"}}
    with Agent(tmp_path / "unix", config=config) as agent, make_scene(agent) as scene:
        scene.leader("a", consul={"address": f"unix://{socket}"})
        scene.waiter("b", consul={"address": f"unix://{socket}"})
        assert scene.nodes["a"].stop() == 0
        assert scene.wait_leader() == "b"
