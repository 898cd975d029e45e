"""Signs a webhook after the Standard Webhooks specification, so that its receiver can trust it.

The scheme is ``v1``: HMAC-SHA256 over ``id.timestamp.body``. A secret is read each time it is used, and kept
nowhere. No error here may contain any part of a secret.
"""

import base64
import binascii
import hashlib
import hmac
import os

from supervisor.adapters.filesystem.mounts import is_local
from supervisor.adapters.filesystem.reading import read

SECRET_FILE_BYTES_MAX = 65_536  # some hundred secrets; stops a wrong path (a device, a log) early
SECRET_PREFIX = b"whsec_"


class SecretUnusable(Exception):
    """The operator's secret_file cannot be used. The message names the file and the reason."""


def headers(secrets: tuple[bytes, ...], message_id: str, timestamp_s: int, body: bytes) -> dict[str, str]:
    """Return the three headers of the specification, with a signature for each secret.

    While a secret is being replaced, receivers that know the old or the new one both accept.
    """
    signed = f"{message_id}.{timestamp_s}.".encode() + body
    macs = [hmac.digest(secret, signed, hashlib.sha256) for secret in secrets]
    return {
        "webhook-id": message_id,
        "webhook-timestamp": str(timestamp_s),
        "webhook-signature": " ".join("v1," + base64.b64encode(mac).decode() for mac in macs),
    }


async def secrets_of(path: str, within_s: float) -> tuple[bytes, ...]:
    """Return the secrets of a file, one a line: base64 behind ``whsec_`` is decoded, other lines are bytes.

    A child reads a file that is on no disk of this machine, within ``within_s``. Raises SecretUnusable.
    """
    size = SECRET_FILE_BYTES_MAX + 1
    try:
        content = _read_here(path, size) if is_local(path) else await read(path, size, within_s)
    except OSError as error:
        raise SecretUnusable(f"cannot read secret_file: {error.strerror}: {path}") from error
    if len(content) > SECRET_FILE_BYTES_MAX:
        raise SecretUnusable(f"cannot use secret_file: more than {SECRET_FILE_BYTES_MAX} bytes: {path}")
    secrets = tuple(_secret(line.strip(), path) for line in content.splitlines() if line.strip())
    if not secrets:
        raise SecretUnusable(f"cannot use secret_file: it is empty: {path}")
    return secrets


def _read_here(path: str, size: int) -> bytes:
    # A named pipe would keep the loop waiting for a writer.
    with open(path, "rb", 0, opener=lambda name, flags: os.open(name, flags | os.O_NONBLOCK)) as file:
        return file.read(size) or b""


def _secret(line: bytes, path: str) -> bytes:
    if not line.startswith(SECRET_PREFIX):
        return line
    try:
        secret = base64.b64decode(line.removeprefix(SECRET_PREFIX), validate=True)
    except binascii.Error:
        secret = b""
    if not secret:
        raise SecretUnusable(f"cannot use secret_file: no base64 after whsec_: {path}")
    return secret
