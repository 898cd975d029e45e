"""Webhooks over real sockets: their requests, their success, and their secrets."""

import asyncio
import base64
import contextlib
import hashlib
import hmac
import json
import ssl
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, unquote

import pytest
import trustme

from supervisor.core.settings import Tls, Webhook
from tests.processes.hooks.trial import trial
from tests.support.patience import PATIENCE_S

OK = b"HTTP/1.1 204 No Content\r\n\r\n"


@dataclass
class Request:
    method: str
    target: str
    headers: dict[str, str]
    body: bytes


@dataclass
class Receiver:
    """A server that keeps each request and answers with ``answer``. None: it never answers."""

    answer: bytes | None = OK
    received: list[Request] = field(default_factory=list)
    keeps_alive: bool = False
    connections: int = 0
    hung_up: int = 0
    origin: str = ""

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        try:
            while True:
                await self._receive(reader)
                if self.answer is not None:
                    writer.write(self.answer)
                if self.answer is not None and not self.keeps_alive:
                    break
        except (asyncio.IncompleteReadError, ConnectionError):
            self.hung_up += 1
        finally:
            writer.close()

    async def _receive(self, reader: asyncio.StreamReader) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
        method, target, _ = head[0].split()
        headers = {name.lower(): value for name, value in (line.split(": ", 1) for line in head[1:-2])}
        body = await reader.readexactly(int(headers.get("content-length", 0)))
        self.received.append(Request(method, target, headers, body))


@contextlib.asynccontextmanager
async def receiver(answer: bytes | None = OK, tls: ssl.SSLContext | None = None) -> AsyncIterator[Receiver]:
    one = Receiver(answer)
    server = await asyncio.start_server(one.serve, "127.0.0.1", 0, ssl=tls)
    port = server.sockets[0].getsockname()[1]
    one.origin = f"{'http' if tls is None else 'https'}://127.0.0.1:{port}"
    async with server:
        yield one


def status(line: str, *headers: str) -> bytes:
    return "\r\n".join([f"HTTP/1.1 {line}", "Content-Length: 0", *headers, "", ""]).encode()


# --- the request --------------------------------------------------------------------------------


async def test_a_webhook_posts_the_event_as_json() -> None:
    async with receiver() as peer, trial() as one:
        outcome = await one.run(Webhook(peer.origin + "/leader?team=a"), attempt=2, leader=b"caf\xe9")
        assert outcome == (True, "204 No Content")
    (seen,) = peer.received
    assert (seen.method, seen.target) == ("POST", "/leader?team=a")
    assert seen.headers["content-type"] == "application/json"
    assert seen.headers["user-agent"].startswith("consul-supervisor/")
    assert "webhook-signature" not in seen.headers
    event = json.loads(seen.body)
    assert (event["event"], event["attempt"], event["node"]) == ("acquire", 2, "node-1")
    assert (event["fencing_token"], event["leader"]) == (4711, "caf\ufffd")


async def test_a_webhook_uses_the_operators_method_headers_body_and_user() -> None:
    async with receiver() as peer, trial() as one:
        url = peer.origin.replace("//", "//me:pass@") + "/x"
        call = Webhook(url, "PUT", headers=(("content-type", "text/plain"), ("X-Key", "k")), body="é")
        assert (await one.run(call))[0]
    (seen,) = peer.received
    assert (seen.method, seen.body, seen.headers["x-key"]) == ("PUT", "é".encode(), "k")
    assert seen.headers["content-type"] == "text/plain"
    assert seen.headers["authorization"] == "Basic " + base64.b64encode(b"me:pass").decode()


async def test_a_receiver_computes_the_same_signature_with_the_present_secrets(tmp_path: Path) -> None:
    path = tmp_path / "hook.key"
    rotations = [(b"first",), (b"second", b"first")]
    async with receiver() as peer, trial() as one:
        call = Webhook(peer.origin, headers=(("Webhook-Id", "forged"),), secret_file=str(path))
        for attempt, secrets in enumerate(rotations, 1):
            path.write_bytes(b"\n".join(secrets))
            assert (await one.run(call, attempt=attempt))[0]
    for seen, secrets in zip(peer.received, rotations, strict=True):
        identity, timestamp = seen.headers["webhook-id"], seen.headers["webhook-timestamp"]
        assert identity == "f3b1c5d0-0001"
        assert abs(int(timestamp) - time.time()) < 60
        signed = f"{identity}.{timestamp}.".encode() + seen.body
        macs = [hmac.new(secret, signed, hashlib.sha256).digest() for secret in secrets]
        expected = " ".join("v1," + base64.b64encode(mac).decode() for mac in macs)
        assert seen.headers["webhook-signature"] == expected


async def test_a_webhook_whose_secret_cannot_be_read_is_not_sent(tmp_path: Path) -> None:
    async with receiver() as peer, trial() as one:
        absent = tmp_path / "absent"
        outcome = await one.run(Webhook(peer.origin, secret_file=str(absent)))
        assert outcome == (False, f"cannot read secret_file: No such file or directory: {absent}")
    assert peer.received == []


# --- facts of the event -------------------------------------------------------------------------

LEADER = "${CONSUL_SUPERVISOR_LEADER}"
HOSTILE = [
    b'"}, "evil": "\r\nX-Evil: 1\r\n\r\nGET /evil HTTP/1.1\r\n',
    b"../../evil?x=1&y=2#z",
    b"${CONSUL_SUPERVISOR_SESSION} $$ ${HOME}",
    b"caf\xe9 \xff\xfe\x00\x01\x7f",
    "é 漢 🙂 \u2028".encode(),
]


@pytest.mark.parametrize("value", HOSTILE, ids=range(len(HOSTILE)))
async def test_a_hostile_value_stays_one_value_at_the_receiver(value: bytes, tmp_path: Path) -> None:
    leader = value.decode(errors="replace")
    key = tmp_path / "key"
    key.write_text("secret")
    async with receiver() as peer, trial() as one:
        call = Webhook(
            f"{peer.origin}/a/{LEADER}/b?c={LEADER}&d=e",
            headers=(("X-Leader", f"is {LEADER}"),),
            body=f'{{"text": "{LEADER}", "attempt": ${{CONSUL_SUPERVISOR_ATTEMPT}}}}',
            secret_file=str(key),
        )
        assert await one.run(call, leader=value, attempt=3) == (True, "204 No Content")
    (seen,) = peer.received
    path, _, query = seen.target.partition("?")
    assert [unquote(part) for part in path.split("/")] == ["", "a", leader, "b"]
    assert parse_qs(query, True) == {"c": [leader], "d": ["e"]}
    assert unquote(seen.headers["x-leader"]) == f"is {leader}".strip(" ")
    assert "x-evil" not in seen.headers
    assert json.loads(seen.body) == {"text": leader, "attempt": 3}
    signed = f"{seen.headers['webhook-id']}.{seen.headers['webhook-timestamp']}.".encode() + seen.body
    mac = base64.b64encode(hmac.digest(b"secret", signed, "sha256")).decode()
    assert seen.headers["webhook-signature"] == f"v1,{mac}"


@pytest.mark.parametrize(
    ("place", "changes", "value"),
    [("webhook", {"url": f"/x/{LEADER}"}, b"x" * 65536), ("webhook", {"url": f"/x/{LEADER}/y"}, b"..")]
    + [("headers", {"headers": (("X-A", LEADER),)}, b"x" * 65536)]
    + [("body", {"body": f'"{LEADER * 50}"'}, b"hunter2" * 9000)],
)
async def test_a_request_that_does_not_fit_the_event_is_not_sent(
    place: str, changes: dict[str, Any], value: bytes
) -> None:
    async with receiver() as peer, trial() as one:
        url = peer.origin + changes.pop("url", "/")
        ok, detail = await one.run(Webhook(url, **changes), leader=value)
        assert not ok and detail.startswith(f"cannot send: {place} cannot be filled in: ")
        assert "hunter2" not in detail and peer.received == []


# --- success ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("line", "ok", "detail"),
    [
        ("200 OK", True, "200 OK"),
        ("202 Fine by me", True, "202 Accepted"),
        ("299 Odd", True, "299"),
        ("404 Not Found", False, "404 Not Found"),
        ("503 Service Unavailable", False, "503 Service Unavailable"),
        ("304 Not Modified", False, "304 Not Modified: redirects are not followed"),
    ],
)
async def test_a_webhook_succeeds_with_any_2xx_and_no_other_status(line: str, ok: bool, detail: str) -> None:
    async with receiver(status(line)) as peer, trial() as one:
        assert await one.run(Webhook(peer.origin)) == (ok, detail)


async def test_a_webhook_does_not_follow_a_redirect() -> None:
    async with receiver() as elsewhere, trial() as one:
        async with receiver(status("307 Temporary Redirect", f"Location: {elsewhere.origin}/")) as peer:
            outcome = await one.run(Webhook(peer.origin))
            assert outcome == (False, "307 Temporary Redirect: redirects are not followed")
        assert (len(peer.received), elsewhere.received) == (1, [])


async def test_each_attempt_of_a_webhook_uses_a_connection_of_its_own() -> None:
    """A kept connection may close just as the request is sent, and its fate would be unknown."""
    async with receiver() as peer, trial() as one:
        peer.keeps_alive = True
        for attempt in (1, 2):
            assert (await one.run(Webhook(peer.origin), attempt=attempt))[0]
        assert (peer.connections, len(peer.received)) == (2, 2)


async def test_a_webhook_without_an_answer_is_not_sent_again() -> None:
    async with receiver(b"") as peer, trial() as one:
        assert not (await one.run(Webhook(peer.origin)))[0]
        assert len(peer.received) == 1


# --- TLS ----------------------------------------------------------------------------------------


async def test_a_receiver_is_verified_with_the_hooks_own_ca_and_gets_its_certificate(tmp_path: Path) -> None:
    ca, stranger = trustme.CA(), trustme.CA()
    ca.cert_pem.write_to_path(str(tmp_path / "ca.pem"))
    stranger.cert_pem.write_to_path(str(tmp_path / "stranger.pem"))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    ca.issue_cert("127.0.0.1").configure_cert(context)
    ca.configure_trust(context)
    context.verify_mode = ssl.CERT_REQUIRED
    own = str(tmp_path / "own.pem")
    ca.issue_cert("client.example").private_key_and_cert_chain_pem.write_to_path(own)
    async with receiver(tls=context) as peer, trial() as one:
        trusted = Webhook(peer.origin, tls=Tls(str(tmp_path / "ca.pem"), cert_file=own, key_file=own))
        assert await one.run(trusted) == (True, "204 No Content")
        untrusted = Webhook(peer.origin, tls=Tls(ca_file=str(tmp_path / "stranger.pem")))
        ok, detail = await one.run(untrusted)
        assert not ok and "not trusted" in detail
        assert f"ca_file {tmp_path}/stranger.pem must have the authority" in detail
        assert len(peer.received) == 1


# --- an early end -------------------------------------------------------------------------------


@pytest.mark.parametrize("answer", [None, b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhal"])
async def test_a_webhook_whose_answer_is_incomplete_in_time_fails(answer: bytes | None) -> None:
    async with receiver(answer) as peer, trial() as one:
        started = one.start(Webhook(peer.origin), timeout_s=1000)
        await one.until(lambda: peer.received or None)
        one.skip(1000)
        assert not (await one.outcome(started))[0] and len(peer.received) == 1


async def test_kill_drops_a_webhook_at_once_and_hangs_up() -> None:
    async with receiver(None) as peer, trial() as one:
        started = one.start(Webhook(peer.origin), timeout_s=100)
        await one.until(lambda: peer.received or None)
        one.kill(started)
        one.kill(started)
        assert await one.outcome(started) == (False, "stopped")
        await one.until(lambda: peer.hung_up or None)
        one.kill(started)
        unsent = one.start(Webhook(peer.origin), attempt=2)
        one.kill_all()
        assert await one.outcome(unsent) == (False, "stopped")


# --- secrets ------------------------------------------------------------------------------------


async def test_no_secret_part_of_a_webhook_is_in_a_detail_or_a_repr(tmp_path: Path) -> None:
    """Path, query, user, headers, body and secret may be secret, in every way in which a webhook can fail."""
    key = tmp_path / "key"
    key.write_text("whsec_hunter2*")
    headers = (("Authorization", "Bearer hunter2"),)
    echo = status("200 hunter2") + b"garbage hunter2"
    details = []
    async with (
        receiver(status("500 hunter2")) as failing,
        receiver(b"hunter2 garbage\r\n\r\n") as garbage,
        receiver(None) as silent,
        receiver(echo) as echoing,
        trial() as one,
    ):
        origins = [
            failing.origin,
            garbage.origin,
            silent.origin,
            echoing.origin,
            "http://127.0.0.1:1",
            "http://[",
        ]
        calls = [
            Webhook(f"{origin}/hunter2?k=hunter2", headers=headers, body="hunter2") for origin in origins
        ]
        calls.append(Webhook(failing.origin, headers=(("X-Bad", "hunter2\nhunter2"),)))
        calls.append(Webhook(failing.origin, secret_file=str(key)))
        calls.append(Webhook(failing.origin.replace("//", "//hunter2:hunter2@")))
        for attempt, call in enumerate(calls):
            timeout_s = 0.3 if call.url.startswith(silent.origin) else PATIENCE_S
            started = one.start(call, timeout_s=timeout_s, attempt=attempt)
            details.append(await one.outcome(started))
            assert "hunter2" not in repr(started)
    assert [ok for ok, _ in details] == [False, False, False, True, *[False] * 5]
    assert all(detail and "hunter2" not in detail for _, detail in details), details
