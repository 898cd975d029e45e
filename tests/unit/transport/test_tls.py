"""TLS: which peers are trusted, which certificate is shown, and how failures are reported."""

import asyncio
import dataclasses
import os
import shutil
import sys
import time
from pathlib import Path

import pytest
import trustme

from supervisor.adapters.filesystem.reading import read_within
from supervisor.adapters.transport import Endpoint, ExchangeFailed, FailureKind
from supervisor.adapters.transport.tls import TlsContext
from supervisor.core.settings import Tls
from tests.support.captured import captured
from tests.support.hung import hung, needs_root
from tests.support.patience import PATIENCE_S, patient
from tests.support.supervisor import until
from tests.unit.transport.conftest import Pki
from tests.unit.transport.harness import PATIENT_S, children, failure_of, get, is_prepared, put, transport
from tests.unit.transport.peer import AGAIN, CLOSE, READ, RESET, Peer, Step, TlsFiles, answer

NOBODY = 65534
SERVES = [READ, answer(b"one"), AGAIN]


def exchanged(url: str, tls: Tls) -> bytes:
    """Return the body of the answer to one read."""

    async def scenario() -> bytes:
        async with transport(url, tls) as it:
            return (await it.exchange(get(url), timeout_s=PATIENT_S, fresh=False)).content

    return asyncio.run(scenario())


def refusal(url: str, tls: Tls) -> str:
    """Return the text of a failed read, which must be of kind tls, the kind of a wrong configuration."""
    with pytest.raises(ExchangeFailed) as caught:
        exchanged(url, tls)
    assert caught.value.kind is FailureKind.TLS, str(caught.value)
    return str(caught.value)


def turned_away(url: str, tls: Tls) -> str:
    """Return the text of a failed read from a server that rejects our certificate and hangs up.

    With TLS 1.3 the server rejects it after a handshake that succeeded on our side. In 1 of 200 cases its
    reset overtakes its alert, so that only the reset can be read.
    """
    for _ in range(5):
        with pytest.raises(ExchangeFailed) as caught:
            exchanged(url, tls)
        if caught.value.kind is FailureKind.TLS:
            return str(caught.value)
        assert caught.value.kind is FailureKind.RESET, str(caught.value)
    raise AssertionError("the alert about the certificate never arrived")


def mutual(pki: Pki) -> TlsFiles:
    return TlsFiles(pki.server.cert, pki.server.key, client_ca=pki.ca)


async def test_a_known_authority_is_trusted_for_reads_writes_and_spare_connections(pki: Pki) -> None:
    """The server's certificate names its address, as it must."""
    with Peer(SERVES, tls=pki.server) as peer:
        async with transport(peer.url, Tls(ca_file=pki.ca)) as it:
            it.prepare()
            for _ in range(2):
                await it.exchange(get(peer.url), timeout_s=PATIENT_S, fresh=False)
            assert is_prepared(it)
            await it.exchange(put(peer.url), timeout_s=PATIENT_S, fresh=True)
        seen = peer.seen()
        assert [request for _, request in seen] == ["GET /", "GET /", "PUT /"]
        assert seen[0][0] == seen[1][0] != seen[2][0]


@pytest.mark.parametrize("end", [CLOSE, RESET], ids=["closed", "reset"])
async def test_a_connection_that_the_peer_ends_at_rest_is_noticed_before_its_use(pki: Pki, end: Step) -> None:
    """Newer versions of Consul close one on which nothing has come for 10 s."""
    with Peer([READ, answer(b"one"), CLOSE], [end], SERVES, tls=pki.server) as peer:
        async with transport(peer.url, Tls(ca_file=pki.ca)) as it:
            await it.exchange(get(peer.url), timeout_s=PATIENT_S, fresh=False)
            it.prepare()
            await asyncio.sleep(patient(1.0))
            assert not is_prepared(it)
            await it.exchange(put(peer.url), timeout_s=PATIENT_S, fresh=True)
            await it.exchange(get(peer.url), timeout_s=PATIENT_S, fresh=False)
        assert peer.seen() == [(0, "GET /"), (2, "PUT /"), (3, "GET /")]


def test_a_folder_of_authorities_is_read_with_any_file_names(pki: Pki, tmp_path: Path) -> None:
    """Consul's command line reads subfolders as well, and does not need the file names of OpenSSL."""
    (tmp_path / "more").mkdir()
    shutil.copy(pki.other_ca, tmp_path / "a")
    authority = Path(pki.ca).read_text()
    (tmp_path / "more" / "b.txt").write_text(f"# hérisson\n{authority}\n{authority}", encoding="utf-8")
    with Peer(SERVES, tls=pki.server) as peer:
        assert exchanged(peer.url, Tls(ca_path=str(tmp_path))) == b"one"
        (tmp_path / "more" / "b.txt").unlink()
        text = refusal(peer.url, Tls(ca_path=str(tmp_path)))
        assert "not trusted" in text and f"a file in {tmp_path} (CONSUL_CAPATH)" in text


@pytest.mark.parametrize(
    ("content", "why"),
    [
        ("", "it has no certificate in PEM"),
        (
            "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----",
            "a certificate in it cannot be read",
        ),
        (None, "it has no file"),
    ],
)
def test_a_folder_of_authorities_that_cannot_be_used_is_named_with_the_reason(
    tmp_path: Path, content: str | None, why: str
) -> None:
    if content is not None:
        (tmp_path / "a").write_text(content)
    text = refusal("https://127.0.0.1:1/", Tls(ca_path=str(tmp_path)))
    assert text.startswith(f"cannot use CONSUL_CAPATH, {tmp_path}") and text.endswith(why)


def test_a_missing_folder_of_authorities_is_named(tmp_path: Path) -> None:
    text = refusal("https://127.0.0.1:1/", Tls(ca_path=str(tmp_path / "none")))
    assert text == f"cannot use CONSUL_CAPATH, {tmp_path}/none: no such file or directory"


@pytest.mark.parametrize(
    ("authority", "server_name"),
    [("other_ca", None), (None, None), ("ca", "consul.example")],
    ids=["an unknown authority", "one that the system does not know", "another server_name than its own"],
)
def test_a_certificate_that_is_not_trusted_is_refused(
    pki: Pki, authority: str | None, server_name: str | None
) -> None:
    """Without ca_file the system's authorities decide, and a server_name counts more than the address."""
    ca_file = authority and str(getattr(pki, authority))
    with Peer(SERVES, tls=pki.server) as peer:
        text = refusal(peer.url, Tls(ca_file=ca_file, server_name=server_name))
        assert text.startswith(f"cannot reach 127.0.0.1:{peer.port}: TLS: its certificate is not trusted: ")
        assert "ca_file" in text or server_name


def test_a_certificate_for_another_name_is_refused_unless_server_name_has_it(pki: Pki) -> None:
    with Peer(SERVES, tls=pki.elsewhere) as peer:
        assert "server_name" in refusal(peer.url, Tls(ca_file=pki.ca))
        assert exchanged(peer.url, Tls(ca_file=pki.ca, server_name="consul.example")) == b"one"


def test_verification_can_be_turned_off(pki: Pki) -> None:
    with Peer(SERVES, tls=pki.elsewhere) as peer:
        assert exchanged(peer.url, Tls(verify=False)) == b"one"


def test_a_missing_client_certificate_is_a_tls_failure(pki: Pki) -> None:
    with Peer(SERVES, tls=mutual(pki)) as peer:
        text = turned_away(peer.url, Tls(ca_file=pki.ca))
        assert "it refused the handshake" in text and "cert_file" in text


def test_a_client_certificate_of_another_authority_is_a_tls_failure(pki: Pki) -> None:
    with Peer(SERVES, tls=mutual(pki)) as peer:
        tls = Tls(ca_file=pki.ca, cert_file=pki.stranger_cert, key_file=pki.stranger_key)
        assert "it refused the handshake" in turned_away(peer.url, tls)


def test_a_missing_client_certificate_is_reported_after_a_rejected_spare_connection(pki: Pki) -> None:
    """The spare is rejected silently, and the exchange must still report the reason."""
    with Peer(SERVES, tls=mutual(pki)) as peer:

        async def scenario() -> ExchangeFailed:
            async with transport(peer.url, Tls(ca_file=pki.ca)) as it:
                it.prepare()
                await asyncio.sleep(0.2)
                return await failure_of(it.exchange(put(peer.url), timeout_s=PATIENT_S, fresh=True))

        kinds = {asyncio.run(scenario()).kind for _ in range(3)}
        assert FailureKind.TLS in kinds <= {FailureKind.TLS, FailureKind.RESET}


@pytest.mark.parametrize("setting", ["ca_file", "cert_file", "key_file"])
@pytest.mark.parametrize("fault", ["missing", "no certificate"])
def test_a_tls_file_that_cannot_be_used_is_named(pki: Pki, tmp_path: Path, setting: str, fault: str) -> None:
    """No server listens there, and the operator's fault is still reported first."""
    file = str(tmp_path / "file.pem")
    good = Tls(ca_file=pki.ca, cert_file=pki.client_cert, key_file=pki.client_key)
    if fault == "no certificate":
        (tmp_path / "file.pem").write_text("nothing of use\n")
    text = refusal("https://127.0.0.1:1", dataclasses.replace(good, **{setting: file}))  # type: ignore[arg-type]  # these are text
    assert text.startswith("cannot use ") and setting in text and file in text


def test_a_tls_file_that_may_not_be_read_is_named(pki: Pki, tmp_path: Path) -> None:
    file = str(shutil.copy(pki.client_cert, tmp_path / "client.pem"))
    os.chmod(file, 0)
    user = os.geteuid()
    try:
        if user == 0:
            os.seteuid(NOBODY)  # root may read every file
        text = refusal("https://127.0.0.1:1", Tls(cert_file=file, key_file=file))
    finally:
        os.seteuid(user)
    assert text == f"cannot use cert_file {file}: permission denied"


def test_a_key_with_a_passphrase_is_refused_without_a_prompt(pki: Pki, tmp_path: Path) -> None:
    """A prompt on a terminal would stall the daemon for ever, so this test has a terminal."""
    from cryptography.hazmat.primitives import serialization

    key = serialization.load_pem_private_key(Path(pki.client_key).read_bytes(), None)
    locked = tmp_path / "locked.pem"
    locked.write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.BestAvailableEncryption(b"passphrase"),
        )
    )
    program = """
import fcntl, sys, termios
from supervisor.core.settings import Tls
from supervisor.adapters.transport import ExchangeFailed
from supervisor.adapters.transport.tls import TlsContext
fcntl.ioctl(0, termios.TIOCSCTTY, 0)
try:
    TlsContext(Tls(cert_file=sys.argv[1], key_file=sys.argv[2])).current()
except ExchangeFailed as failure:
    print(failure.kind, failure)
"""
    keyboard, terminal = os.openpty()
    try:
        ended = captured(
            [sys.executable, "-c", program, pki.client_cert, str(locked)],
            stdin=terminal,
            start_new_session=True,
            timeout=PATIENCE_S,
        )
    finally:
        os.close(keyboard)
        os.close(terminal)
    assert ended.stderr == ""
    assert ended.stdout.startswith(f"tls cannot use key_file {locked}: it has a passphrase")
    assert f"openssl pkey -in {locked}" in ended.stdout


async def test_rotated_tls_files_are_used_for_the_next_connection(pki: Pki, tmp_path: Path) -> None:
    """The server has moved to a new authority and ca_file follows, without a restart."""
    ca_file = tmp_path / "ca.pem"

    def rotate(authority: str) -> None:
        os.replace(shutil.copy(authority, tmp_path / "new.pem"), ca_file)

    rotate(pki.other_ca)
    with Peer(SERVES, tls=pki.server) as peer:
        async with transport(peer.url, Tls(ca_file=str(ca_file))) as it:
            await failure_of(it.exchange(put(peer.url), timeout_s=PATIENT_S, fresh=True))
            rotate(pki.ca)
            await it.exchange(put(peer.url), timeout_s=PATIENT_S, fresh=True)
            rotate(pki.other_ca)
            await failure_of(it.exchange(put(peer.url), timeout_s=PATIENT_S, fresh=True))


async def test_tls_files_that_turn_bad_are_logged_once_and_the_last_good_ones_stay_in_use(
    pki: Pki, tmp_path: Path
) -> None:
    """Certificate and key do not fit while only one of the two has been replaced."""
    cert, key = (Path(shutil.copy(file, tmp_path)) for file in (pki.client_cert, pki.client_key))
    tls = Tls(ca_file=pki.ca, cert_file=str(cert), key_file=str(key))
    warned: list[str] = []
    with Peer([*SERVES, *SERVES], tls=mutual(pki)) as peer:
        async with transport(peer.url, tls, warn=warned.append) as it:
            for content in (None, b"nothing of use\n", None):
                if content is not None:
                    key.write_bytes(content)
                await it.exchange(put(peer.url), timeout_s=PATIENT_S, fresh=True)
            assert warned == [
                f"cannot use cert_file and key_file {cert}, {key}: one of them holds no PEM of its kind; "
                "the last good ones stay in use"
            ]
            key.unlink()
            await it.exchange(put(peer.url), timeout_s=PATIENT_S, fresh=True)
            assert f"cannot use key_file {key}: no such file" in warned[1]
            shutil.copy(pki.client_key, key)
            await it.exchange(put(peer.url), timeout_s=PATIENT_S, fresh=True)
            assert len(warned) == 2


@needs_root
def test_tls_files_on_a_hung_file_system_leave_the_last_good_ones_in_use(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only the first look waits for an answer."""
    folder = tmp_path / "far"
    folder.mkdir()
    trustme.CA().cert_pem.write_to_path(folder / "ca.pem")
    warned: list[str] = []
    others = {*children()}
    tls = TlsContext(Tls(ca_file=str(folder / "ca.pem")), warned.append)
    good = tls.current()
    with hung(folder):
        assert tls.current() is good
        assert len(warned) == 1 and "did not answer" in warned[0] and "last good" in warned[0]
        with monkeypatch.context() as patched:
            patched.setattr("supervisor.adapters.transport.tls.PULSE_S", PATIENCE_S)
            began_at = time.monotonic()
            assert [tls.current() for _ in range(5)] == [good] * 5
            assert time.monotonic() - began_at < PATIENCE_S
        fresh = TlsContext(Tls(ca_file=str(folder / "ca.pem")))
        with pytest.raises(ExchangeFailed, match="did not answer"):
            fresh.current()
        fresh.close()
    until(lambda: tls.current() is good, "the file system answers again")
    tls.close()
    until(
        lambda: read_within(os.devnull, 1) == b"" and {*children()} <= others,
        "the next look reaps the children of those before",
    )


def test_a_server_name_that_is_no_host_name_is_refused_at_once() -> None:
    with pytest.raises(ValueError, match="server_name"):
        Endpoint.of("https://127.0.0.1", Tls(server_name="a b"))
