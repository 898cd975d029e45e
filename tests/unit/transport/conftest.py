"""Fixtures of the transport; every test must leave no descriptor, no thread and no process behind."""

import gc
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
import trustme

from tests.unit.transport import harness
from tests.unit.transport.peer import TlsFiles


@pytest.fixture(autouse=True)
def nothing_is_left() -> Iterator[None]:
    gc.collect()  # because a test of another folder may have left a closed loop, with its descriptors
    descriptors, children = harness.descriptors(), {*harness.children()}
    yield
    assert harness.helper_threads() == []
    assert harness.descriptors() <= descriptors
    assert {*harness.children()} <= children  # an agent that tests share may have ended meanwhile


@dataclass(frozen=True)
class Pki:
    """Files of two authorities that do not know each other."""

    ca: str
    other_ca: str
    server: TlsFiles  # for 127.0.0.1 and localhost
    elsewhere: TlsFiles  # for consul.example
    client_cert: str
    client_key: str
    stranger_cert: str
    stranger_key: str


@pytest.fixture(scope="session")
def pki(tmp_path_factory: pytest.TempPathFactory) -> Pki:
    folder = tmp_path_factory.mktemp("pki")
    ca, other = trustme.CA(), trustme.CA()
    ca.cert_pem.write_to_path(str(folder / "ca.pem"))
    other.cert_pem.write_to_path(str(folder / "other-ca.pem"))
    server = _issue(ca, folder, "127.0.0.1", "localhost")
    elsewhere = _issue(ca, folder, "consul.example")
    client, stranger = _issue(ca, folder, "client.example"), _issue(other, folder, "stranger.example")
    return Pki(
        ca=str(folder / "ca.pem"),
        other_ca=str(folder / "other-ca.pem"),
        server=server,
        elsewhere=elsewhere,
        client_cert=client.cert,
        client_key=client.key,
        stranger_cert=stranger.cert,
        stranger_key=stranger.key,
    )


def _issue(ca: trustme.CA, folder: Path, *names: str) -> TlsFiles:
    issued = ca.issue_cert(*names)
    cert, key = folder / f"{names[0]}.pem", folder / f"{names[0]}.key"
    issued.private_key_pem.write_to_path(str(key))
    for position, blob in enumerate(issued.cert_chain_pems):
        blob.write_to_path(str(cert), append=position > 0)
    return TlsFiles(str(cert), str(key))
