"""A PreparedRequest as bytes, and what h11 reads as a Response.

Pure: no socket, no clock. Nothing here decodes a charset or a content coding, because guessing a charset took
0.7 s on 8 MB, and a coding can be a bomb. So ``Response.text`` must never be used.
"""

from collections.abc import Iterable
from urllib.parse import urlsplit

import h11
import requests
from requests.structures import CaseInsensitiveDict

from supervisor.transport.failure import ExchangeFailed, FailureKind


class RepeatedRequest(requests.PreparedRequest):
    """A request that is sent again and again unchanged, so that its head is made only once.

    head: the head. None: the request was not sent yet.
    """

    head: h11.Request | None = None

    @classmethod
    def of(cls, request: requests.PreparedRequest) -> "RepeatedRequest":
        """Return this request as one that is sent again and again. Nobody may change either of them."""
        repeated = cls()
        vars(repeated).update(vars(request))
        return repeated


def encode(connection: h11.Connection, request: requests.PreparedRequest, peer: str) -> bytes:
    """Return head and body of the request for one write. Afterwards ``connection`` awaits the answer.

    Raises ExchangeFailed (local) for a request that HTTP does not allow.
    """
    assert request.method and request.url and "Transfer-Encoding" not in request.headers
    body = request.body or b""
    body = body.encode() if isinstance(body, str) else body
    assert isinstance(body, bytes), "a body is bytes or text: its length must be known"
    try:
        sent = [connection.send(_head(request))]
        if body:
            sent.append(connection.send(h11.Data(data=body)))
        sent.append(connection.send(h11.EndOfMessage()))
    except (h11.LocalProtocolError, UnicodeError):
        # h11's text is left out, because it quotes the header, which may be a token.
        text = f"cannot send a request to {peer}: its target or a header has a character that HTTP forbids"
        raise ExchangeFailed(FailureKind.LOCAL, text) from None
    return b"".join(filter(None, sent))


def decode(request: requests.PreparedRequest, head: h11.Response, body: bytes) -> requests.Response:
    """Return the answer as requests models it, with its ``content`` and without an encoding."""
    response = requests.Response()
    response.status_code = head.status_code
    response.reason = head.reason.decode("latin-1")
    response.headers = CaseInsensitiveDict(_joined(head.headers))
    response.url = request.url or ""
    response.request = request
    response._content = body
    response._content_consumed = True  # type: ignore[attr-defined]  # not in the stubs
    return response


def content_length(head: h11.Response) -> int:
    """Return the length of the body in bytes, as the head declares it. 0: the head does not."""
    length = dict(head.headers).get(b"content-length", b"0")
    return int(length) if length.isdigit() else 0


def _head(request: requests.PreparedRequest) -> h11.Request:
    if isinstance(request, RepeatedRequest) and request.head is not None:
        return request.head
    head = h11.Request(method=str(request.method), target=request.path_url, headers=_headers(request))
    if isinstance(request, RepeatedRequest):
        request.head = head
    return head


def _headers(request: requests.PreparedRequest) -> list[tuple[str, str]]:
    headers = [(name, _text(value)) for name, value in request.headers.items()]
    if "Host" not in request.headers:
        headers.insert(0, ("Host", urlsplit(str(request.url)).netloc.rpartition("@")[2]))
    if "Accept-Encoding" not in request.headers:
        headers.append(("Accept-Encoding", "identity"))
    return headers


def _joined(headers: Iterable[tuple[bytes, bytes]]) -> dict[str, str]:
    """Join the values of a header that came more than once by commas, as requests does."""
    joined: dict[str, str] = {}
    for name, value in headers:
        key, text = name.decode("latin-1"), value.decode("latin-1")
        joined[key] = f"{joined[key]}, {text}" if key in joined else text
    return joined


def _text(value: str | bytes) -> str:
    return value.decode("latin-1") if isinstance(value, bytes) else value
