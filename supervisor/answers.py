"""What a response says, piece by piece; whatever is not what Consul answers is Unreadable."""

import base64
import json
from binascii import Error as Base64Error
from typing import Any

import requests

WHY_CHARS_MAX = 200  # an error text goes into log lines and status


class Unreadable(Exception):
    """The peer's answer is not what Consul answers; the text says in what."""


def json_of(response: requests.Response, kind: type) -> Any:
    """The body, which is a JSON value of this kind."""
    try:
        value = json.loads(response.content)
    except (ValueError, RecursionError):
        raise Unreadable("no JSON") from None
    if not isinstance(value, kind):
        raise Unreadable(f"JSON of another shape than {kind.__name__}")
    return value


def text(entry: object, name: str, default: str | None = None) -> str:
    """This field, which is text."""
    value = entry.get(name, default) if isinstance(entry, dict) else None
    if not isinstance(value, str):
        raise Unreadable(f"no {name}")
    return value


def number(entry: object, name: str) -> int:
    """This field, which is a whole number from 0 on."""
    value = entry.get(name) if isinstance(entry, dict) else None
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise Unreadable(f"no {name}")
    return value


def value_of(entry: Any) -> bytes:
    """The value of a key's entry."""
    encoded = entry.get("Value")
    if encoded is None:
        return b""
    try:
        return base64.b64decode(str(encoded), validate=True)
    except (Base64Error, ValueError):
        raise Unreadable("a value that is not base64") from None


def index_of(response: requests.Response) -> int:
    """X-Consul-Index."""
    index_text = response.headers.get("X-Consul-Index", "")
    if not index_text.isascii() or not index_text.isdecimal() or len(index_text) > 20:
        raise Unreadable("no X-Consul-Index")
    return int(index_text)


def head_of(response: requests.Response) -> str:
    """The head of the body; requests' own ``text`` would guess a charset, at great length."""
    return response.content[: 4 * WHY_CHARS_MAX].decode("utf-8", "replace")


def why(response: requests.Response) -> str:
    """Status and body, as the reason of a failure."""
    words = " ".join(head_of(response).split())[:WHY_CHARS_MAX]
    return f"{response.status_code} {words}".rstrip()
