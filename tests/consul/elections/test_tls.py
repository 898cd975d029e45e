"""TLS with client certificates, on a real Consul that requires them.

A node with a good certificate leads, and each fault is reported with the file, the reason and the remedy.
"""

import datetime
import json
import os
import signal
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
import trustme

from tests.consul.conftest import MakeScene
from tests.consul.elections.scene import Scene
from tests.support.consul import Agent, free_ports
from tests.support.supervisor import command, until

PAST = datetime.datetime(2020, 1, 1), datetime.datetime(2021, 1, 1)
TRIES = 5  # a server's reset may overtake its alert, and then only says that the connection was closed


@dataclass
class Pki:
    """Two authorities, and the files that they issued: ``NAME.pem`` and ``NAME.key`` in ``folder``."""

    folder: Path
    authority: trustme.CA
    stranger: trustme.CA

    def issue(self, name: str, identity: str, by: trustme.CA, *, expired: bool = False) -> None:
        """Issue a certificate and its key; existing files are replaced."""
        begin, end = PAST if expired else (None, None)
        issued = by.issue_cert(identity, not_before=begin, not_after=end)
        for suffix, pem in ((".pem", issued.cert_chain_pems[0]), (".key", issued.private_key_pem)):
            pem.write_to_path(str(self.folder / "new"))
            os.replace(self.folder / "new", self.folder / f"{name}{suffix}")

    def trust(self, name: str, *authorities: trustme.CA) -> None:
        """Write a file of authorities."""
        self.path(name).write_bytes(b"".join(authority.cert_pem.bytes() for authority in authorities))

    def path(self, name: str) -> Path:
        return self.folder / name

    def tls(self, **changes: str | None) -> dict[str, str]:
        """Return the TLS section of a good client's file with these changes: a name of a file, or None."""
        files = {"ca_file": "ca.pem", "cert_file": "client.pem", "key_file": "client.key", **changes}
        return {
            key: file if key == "server_name" else str(self.path(file))
            for key, file in files.items()
            if file is not None
        }


def made_pki(folder: Path) -> Pki:
    folder.mkdir()
    pki = Pki(folder, trustme.CA(), trustme.CA())
    pki.trust("ca.pem", pki.authority)
    pki.trust("stranger-ca.pem", pki.stranger)
    pki.trust("server-ca.pem", pki.authority)
    pki.issue("server", "127.0.0.1", pki.authority)
    pki.issue("client", "client.example", pki.authority)
    pki.issue("stranger", "client.example", pki.stranger)
    pki.issue("expired", "client.example", pki.authority, expired=True)
    return pki


class TlsAgent(Agent):
    """An agent that also listens for TLS and requires a client certificate there."""

    def __init__(self, folder: Path, pki: Pki) -> None:
        self.tls_port = free_ports(1)[0]
        files = {"ca_file": "server-ca.pem", "cert_file": "server.pem", "key_file": "server.key"}
        config = {
            "ports": {"https": self.tls_port},
            "verify_incoming": True,
            **{setting: str(pki.path(file)) for setting, file in files.items()},
        }
        super().__init__(folder, config=config)

    @property
    def tls_url(self) -> str:
        return f"https://127.0.0.1:{self.tls_port}"


@pytest.fixture(scope="module")
def pki(tmp_path_factory: pytest.TempPathFactory) -> Pki:
    return made_pki(tmp_path_factory.mktemp("tls") / "pki")


@pytest.fixture(scope="module")
def tls_agent(pki: Pki) -> Iterator[TlsAgent]:
    with TlsAgent(pki.folder.parent / "consul", pki) as agent:
        yield agent


@pytest.fixture
def scene(tls_agent: TlsAgent, make_scene: MakeScene[Scene]) -> Iterator[Scene]:
    with make_scene(tls_agent) as made:
        yield made


def leader_of(folder: Path, address: str, tls: dict[str, str]) -> tuple[int, str, str]:
    """Run ``leader``, and return its exit code, standard output and standard error."""
    file = folder / "command.yaml"
    consul = {"address": address, "tls": tls}
    file.write_text(json.dumps({"consul": consul, "elections": {"app": {"key": "app/leader"}}}))
    for _ in range(TRIES):
        done = command("leader", "app", "--config", str(file))
        assert "Traceback" not in done.stderr and done.stderr.count("\n") <= 1
        if "the connection before it answered" not in done.stderr:
            break
    return done.returncode, done.stdout, done.stderr


def test_a_node_with_a_certificate_leads_and_one_without_gets_the_remedy(
    scene: Scene, tls_agent: TlsAgent, pki: Pki
) -> None:
    a = scene.leader("a", consul={"address": tls_agent.tls_url, "tls": pki.tls()})
    without = pki.tls(cert_file=None, key_file=None)
    b = scene.node("b", consul={"address": tls_agent.tls_url, "tls": without})
    until(
        lambda: any("set cert_file and key_file" in line["why"] for line in b.lines("consul-silent")),
        "b is told what to set",
    )
    scene.agent.kv_put(scene.key, b"through tls")
    scene.wait_told("a", "value-changed through tls")
    assert a.running and not b.lines("role", role="holding")


@pytest.mark.long
def test_commands_that_query_consul_present_the_certificate(
    tls_agent: TlsAgent, pki: Pki, tmp_path: Path, unique: str
) -> None:
    """The certificate comes from the file or from Consul's own variables."""
    session = tls_agent.session_create(TTL="60s", LockDelay="0s")
    assert tls_agent.acquire("app/leader", session, b"me")
    assert leader_of(tmp_path, tls_agent.tls_url, pki.tls()) == (0, "me\n", "")
    environ = {
        "CONSUL_HTTP_ADDR": tls_agent.tls_url,
        "CONSUL_CACERT": str(pki.path("ca.pem")),
        "CONSUL_CLIENT_CERT": str(pki.path("client.pem")),
        "CONSUL_CLIENT_KEY": str(pki.path("client.key")),
    }
    good = command("verify", "--key", "app/leader", "--session", session, environ=environ)
    assert (good.returncode, good.stderr) == (0, "")
    tls_agent.session_destroy(session)
    assert tls_agent.kv_put(f"{unique}/.lock", b'{"Limit": 2, "Holders": {}}')
    file = tmp_path / "semaphore.yaml"
    item = {"prefix": unique, "limit": 2}
    consul = {"address": tls_agent.tls_url, "tls": pki.tls()}
    file.write_text(json.dumps({"consul": consul, "semaphores": {"app": item}}))
    done = command("limit", "app", "3", "--config", str(file))
    assert (done.returncode, done.stderr) == (0, "")
    entry = tls_agent.kv_get(f"{unique}/.lock")
    assert entry is not None and json.loads(entry["Value"])["Limit"] == 3


NO_CERT: dict[str, str | None] = {"cert_file": None, "key_file": None}
WRONG: dict[str, tuple[dict[str, str | None], str]] = {
    "wrong authority": (
        {"ca_file": "stranger-ca.pem"},
        "its certificate is not trusted: unable to get local issuer certificate; "
        "ca_file {folder}/stranger-ca.pem must have the authority that has signed it",
    ),
    "no authority": ({"ca_file": None}, "; set ca_file to the authority that has signed it"),
    "wrong name": (
        {"server_name": "consul.example"},
        "set server_name to a name that it bears instead of consul.example",
    ),
    "no client certificate": (
        NO_CERT,
        "refused the handshake: {any}; it may want a client certificate: set cert_file",
    ),
    "expired": (
        {"cert_file": "expired.pem", "key_file": "expired.key"},
        "refused the handshake: {any}; cert_file {folder}/expired.pem may have expired, or be signed by",
    ),
    "certificate of a stranger": (
        {"cert_file": "stranger.pem", "key_file": "stranger.key"},
        "refused the handshake: {any}; cert_file {folder}/stranger.pem may have expired, or be signed by",
    ),
    "key of another": (
        {"key_file": "stranger.key"},
        "cannot use cert_file and key_file {folder}/client.pem, {folder}/stranger.key: "
        "TLS: key values mismatch",
    ),
    "file that is not there": (
        {"cert_file": "none.pem"},
        "cannot use cert_file {folder}/none.pem: no such file or directory",
    ),
}


@pytest.mark.long
@pytest.mark.parametrize("fault", WRONG)
def test_each_fault_of_tls_is_reported_with_the_file_and_the_remedy(
    tls_agent: TlsAgent, pki: Pki, tmp_path: Path, fault: str
) -> None:
    changes, told = WRONG[fault]
    code, out, error = leader_of(tmp_path, tls_agent.tls_url, pki.tls(**changes))
    assert (code, out) == (69, "")
    for piece in told.replace("{folder}", str(pki.folder)).split("{any}"):
        assert piece in error


def test_a_server_whose_certificate_has_expired_is_not_trusted(tmp_path: Path) -> None:
    pki = made_pki(tmp_path / "pki")
    pki.issue("server", "127.0.0.1", pki.authority, expired=True)
    with TlsAgent(tmp_path / "consul", pki) as agent:
        code, _, error = leader_of(tmp_path, agent.tls_url, pki.tls())
    assert code == 69
    assert "its certificate is not trusted: certificate has expired; renew it on that side" in error


def test_an_address_without_tls_is_reported_as_one(tls_agent: TlsAgent, pki: Pki, tmp_path: Path) -> None:
    code, _, error = leader_of(tmp_path, f"https://127.0.0.1:{tls_agent.port}", pki.tls())
    assert code == 69 and "it does not speak TLS there (http:// instead of https://?)" in error


@pytest.mark.long
def test_certificates_and_authorities_are_renewed_without_a_restart(
    make_scene: MakeScene[Scene], tmp_path: Path
) -> None:
    """An operator renews them step by step, and at the end neither side trusts the first authority.

    Each write goes over a new connection.
    """
    pki = made_pki(tmp_path / "pki")
    first, second = pki.authority, pki.stranger
    with TlsAgent(tmp_path / "consul", pki) as agent, make_scene(agent) as scene:
        a = scene.leader(
            "a",
            consul={"address": agent.tls_url, "tls": pki.tls()},
            session={"lock_delay": "20s", "ttl": "5s"},
        )
        session = scene.session_of("a")
        pki.trust("ca.pem", first, second)
        pki.trust("server-ca.pem", first, second)
        os.kill(agent.pid, signal.SIGHUP)
        pki.issue("client", "client.example", second)
        pki.issue("server", "127.0.0.1", second)
        os.kill(agent.pid, signal.SIGHUP)
        pki.trust("server-ca.pem", second)
        os.kill(agent.pid, signal.SIGHUP)
        pki.trust("ca.pem", second)
        old = pki.tls(cert_file="expired.pem", key_file="expired.key")
        until(lambda: leader_of(tmp_path, agent.tls_url, pki.tls())[0] == 1, "new connections are taken")
        assert leader_of(tmp_path, agent.tls_url, old)[0] == 69
        assert scene.session_of("a") == session
        assert a.stop() == 0
        assert scene.calls("a") == ["acquire acquired", "lose shutdown"]
