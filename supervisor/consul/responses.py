"""Typed access to a response. A function raises MalformedResponse where Consul would answer otherwise.

A client agent puts ``rpc error making call: `` before a server's error, once for each hop, and newer
servers put ``apply failed: `` before that. So a text of Consul must be compared as ``said`` gives it, and
nowhere else; an operator is shown the whole text, as ``why`` gives it.
"""

import base64
import json
import re
from binascii import Error as Base64Error
from typing import Any

import requests

from supervisor.core.outcomes import Failed, Throttled, Unknown

WHY_CHARS_MAX = 200  # an error text goes into log lines and status
RATE_LIMIT = "rate limit exceeded"
CONNECTION_LIMIT = "too many concurrent connections"
MORE_CONNECTIONS = "raise limits.http_max_conns_per_client in the agent's configuration"
_HOPS = re.compile(r"^(?:(?:rpc error making call|rpc error|apply failed): (?:code = \w+ desc = )?)+")


class MalformedResponse(Exception):
    """The peer's answer is not what Consul answers; the text says in what."""


def json_of(response: requests.Response, kind: type) -> Any:
    """The body, which is a JSON value of this kind."""
    try:
        value = json.loads(response.content)
    except (ValueError, RecursionError):
        raise MalformedResponse("no JSON") from None
    if not isinstance(value, kind):
        raise MalformedResponse(f"JSON of another shape than {kind.__name__}")
    return value


def text(entry: object, name: str, default: str | None = None) -> str:
    """This field, which is text."""
    value = entry.get(name, default) if isinstance(entry, dict) else None
    if not isinstance(value, str):
        raise MalformedResponse(f"no {name}")
    return value


def number(entry: object, name: str) -> int:
    """This field, which is a whole number from 0 on."""
    value = entry.get(name) if isinstance(entry, dict) else None
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise MalformedResponse(f"no {name}")
    return value


def value_of(entry: Any) -> bytes:
    """The value of a key's entry."""
    encoded = entry.get("Value")
    if encoded is None:
        return b""
    try:
        return base64.b64decode(str(encoded), validate=True)
    except (Base64Error, ValueError):
        raise MalformedResponse("a value that is not base64") from None


def index_of(response: requests.Response) -> int:
    """X-Consul-Index."""
    index_text = response.headers.get("X-Consul-Index", "")
    if not index_text.isascii() or not index_text.isdecimal() or len(index_text) > 20:
        raise MalformedResponse("no X-Consul-Index")
    return int(index_text)


def is_filtered(response: requests.Response) -> bool:
    """Whether Consul left out of this list what the token may not read; it says so since 1.11."""
    return response.headers.get("X-Consul-Results-Filtered-By-ACLs", "").lower() == "true"


def why(response: requests.Response) -> str:
    """Status and body, as the reason of a failure that an operator is shown."""
    words = " ".join(_words(response).split())[:WHY_CHARS_MAX]
    return f"{response.status_code} {words}".rstrip()


def said(response: requests.Response) -> str:
    """The words of an error as the server wrote them, without what agents have put before them."""
    return _HOPS.sub("", _words(response))


def failed(response: requests.Response) -> Unknown:
    """Return the outcome of an error after which nobody knows whether a write was applied."""
    words, status = said(response), response.status_code
    if status == 429 and CONNECTION_LIMIT in words:
        return Failed(f"{why(response)}: {MORE_CONNECTIONS}")
    if status == 429 or (status >= 500 and RATE_LIMIT in words.lower()):
        return Throttled(why(response))
    return Failed(why(response))


def unreadable(error: MalformedResponse) -> Failed:
    """Return the outcome of an answer that Consul would not give."""
    return Failed(f"not an answer of Consul: {error}")


def _words(response: requests.Response) -> str:
    """The errors of a transaction, else the head of the body; requests' own ``text`` would guess a
    charset, at great length."""
    if response.status_code == 409:
        try:
            errors = json.loads(response.content)["Errors"]
            return "; ".join(str(error["What"]) for error in errors)
        except (ValueError, RecursionError, TypeError, KeyError):
            pass
    return response.content[: 4 * WHY_CHARS_MAX].decode("utf-8", "replace")
