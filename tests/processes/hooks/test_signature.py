"""Signatures as the Standard Webhooks specification defines them."""

import asyncio
import base64
import hashlib
import hmac
import os
from pathlib import Path

import pytest

from supervisor.adapters.hooks.signature import SECRET_FILE_BYTES_MAX, SecretUnusable, headers, secrets_of


def test_the_signature_of_the_specifications_example_is_right() -> None:
    """The specification's reference libraries test this secret, message and result."""
    secret = base64.b64decode("MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")
    made = headers((secret,), "msg_p5jXN8AQM9LWM0D4loKWxJek", 1614265330, b'{"test": 2432232314}')
    assert made == {
        "webhook-id": "msg_p5jXN8AQM9LWM0D4loKWxJek",
        "webhook-timestamp": "1614265330",
        "webhook-signature": "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=",
    }


def test_each_secret_gives_a_signature_of_its_own() -> None:
    made = headers((b"new", b"old"), "id", 1, b"body")["webhook-signature"].split(" ")
    for secret, signature in zip((b"new", b"old"), made, strict=True):
        mac = hmac.new(secret, b"id.1.body", hashlib.sha256).digest()
        assert signature == "v1," + base64.b64encode(mac).decode()


def read_secrets(path: Path) -> tuple[bytes, ...]:
    return asyncio.run(secrets_of(str(path), 1.0))


@pytest.mark.parametrize(
    ("content", "secrets"),
    [
        (b"plain secret \n", (b"plain secret",)),
        (b"whsec_" + base64.b64encode(b"\x00key") + b"\n", (b"\x00key",)),
        (b"\nnew\r\n\nold", (b"new", b"old")),
    ],
)
def test_a_secret_file_has_one_secret_per_line(
    tmp_path: Path, content: bytes, secrets: tuple[bytes, ...]
) -> None:
    path = tmp_path / "key"
    path.write_bytes(content)
    assert read_secrets(path) == secrets


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (b"", "it is empty"),
        (b" \n\n", "it is empty"),
        (b"whsec_not*base64", "no base64 after whsec_"),
        (b"whsec_", "no base64 after whsec_"),
        (b"x" * (SECRET_FILE_BYTES_MAX + 1), "more than 65536 bytes"),
    ],
)
def test_an_unusable_secret_file_is_named_without_its_content(
    tmp_path: Path, content: bytes, why: str
) -> None:
    path = tmp_path / "key"
    path.write_bytes(content)
    with pytest.raises(SecretUnusable) as caught:
        read_secrets(path)
    assert str(caught.value) == f"cannot use secret_file: {why}: {path}"


def test_a_secret_file_that_cannot_be_read_is_reported_with_the_reason(tmp_path: Path) -> None:
    with pytest.raises(SecretUnusable, match="cannot read secret_file: No such file or directory: /"):
        read_secrets(tmp_path / "absent")
    with pytest.raises(SecretUnusable, match="cannot read secret_file: Is a directory: /"):
        read_secrets(tmp_path)


def test_a_named_pipe_as_secret_file_does_not_wait_for_a_writer(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(SecretUnusable, match="it is empty"):
        read_secrets(tmp_path / "pipe")
