"""Typed access to a response. Any function that reads one raises MalformedResponse where it is not Consul's.

A client agent puts ``rpc error making call: `` before a server's error, once for each hop, and newer servers
put ``apply failed: `` before that, or ``raft apply failed: ``. So code must compare a text of Consul only as
``error_text`` returns it. An operator sees the whole text, as ``why`` returns it.
"""

import base64
import json
import re
from typing import Any

import requests

from supervisor.core.outcomes import Failed, Throttled, Unknown

WHY_CHARS_MAX = 200  # because an error text goes into log lines and status
RATE_LIMIT = "rate limit exceeded"
CONNECTION_LIMIT = "too many concurrent connections"
MORE_CONNECTIONS = "raise limits.http_max_conns_per_client in the agent's configuration"
_JSON = json.JSONDecoder()
_HOPS = re.compile(r"^(?:(?:rpc error(?: making call)?|(?:raft )?apply failed): (?:code = \w+ desc = )?)+")


class MalformedResponse(Exception):
    """An answer that Consul would not give; the text names the fault."""


def json_of(response: requests.Response, kind: type) -> Any:
    """Return the body, which must be a JSON value of this kind."""
    return json_in(response.content, kind)


def json_in(content: bytes, kind: type) -> Any:
    try:
        value = _JSON.decode(content.decode())
    except (ValueError, RecursionError):
        raise MalformedResponse("no JSON") from None
    if not isinstance(value, kind):
        raise MalformedResponse(f"JSON of another shape than {kind.__name__}")
    return value


def text(entry: object, name: str, default: str | None = None) -> str:
    """Return this field of ``entry``, which must be text. ``default``: the value of a missing field."""
    value = entry.get(name, default) if isinstance(entry, dict) else None
    if not isinstance(value, str):
        raise MalformedResponse(f"no {name}")
    return value


def number(entry: object, name: str) -> int:
    """Return this field of ``entry``, which must be a whole number from 0 on."""
    value = entry.get(name) if isinstance(entry, dict) else None
    if type(value) is not int or value < 0:  # a bool is an int
        raise MalformedResponse(f"no {name}")
    return value


def value_of(entry: Any) -> bytes:
    """Return the value of a key's entry, which Consul shows as base64, or as null when it is empty."""
    encoded = entry.get("Value")
    if encoded is None:
        return b""
    try:
        return base64.b64decode(str(encoded), validate=True)
    except ValueError:
        raise MalformedResponse("a value that is not base64") from None


def index_of(response: requests.Response) -> int:
    index_text = response.headers.get("X-Consul-Index", "")
    if not index_text.isascii() or not index_text.isdecimal() or len(index_text) > 20:
        raise MalformedResponse("no X-Consul-Index")
    return int(index_text)


def truth_of(response: requests.Response) -> bool:
    """Return the body, which must be true or false."""
    if (answer := response.content.strip()) not in (b"true", b"false"):
        raise MalformedResponse("neither true nor false")
    return answer == b"true"


def entries_of(response: requests.Response) -> list[object]:
    """Return the entry of a key that each operation of a transaction shows."""
    results = json_of(response, dict).get("Results")
    if not isinstance(results, list) or not results or not all(isinstance(each, dict) for each in results):
        raise MalformedResponse("a transaction without its results")
    return [each.get("KV") for each in results]


def is_filtered(response: requests.Response) -> bool:
    """Return whether Consul reports that it left out entries that the token may not read, as since 1.11."""
    return response.headers.get("X-Consul-Results-Filtered-By-ACLs", "").lower() == "true"


def why(response: requests.Response) -> str:
    """Return status and body, as the reason of a failure that an operator sees."""
    words = " ".join(_words(response).split())[:WHY_CHARS_MAX]
    return f"{response.status_code} {words}".rstrip()


def error_text(response: requests.Response) -> str:
    """Return an error's text as the server wrote it, without the prefixes of agents."""
    return _HOPS.sub("", _words(response))


def failed(response: requests.Response) -> Unknown:
    """Return the outcome of an error after which a write may or may not have been applied."""
    words, status = error_text(response), response.status_code
    if status == 429 and CONNECTION_LIMIT in words:
        return Failed(f"{why(response)}: {MORE_CONNECTIONS}")
    if status == 429 or (status >= 500 and RATE_LIMIT in words.lower()):
        return Throttled(why(response))
    return Failed(why(response))


def unreadable(error: MalformedResponse) -> Failed:
    """Return the outcome of an answer that Consul would not give."""
    return Failed(f"not an answer of Consul: {error}")


def _words(response: requests.Response) -> str:
    """Return the errors of a transaction, else the head of the body.

    The ``text`` of requests is not used, because it would guess a charset, which is slow.
    """
    if response.status_code == 409:
        try:
            errors = json.loads(response.content)["Errors"]
            return "; ".join(str(error["What"]) for error in errors)
        except (ValueError, RecursionError, TypeError, KeyError):
            pass
    return response.content[: 4 * WHY_CHARS_MAX].decode("utf-8", "replace")
