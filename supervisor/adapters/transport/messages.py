"""A PreparedRequest as bytes, and the bytes of an answer as a Response.

Pure: no socket, no clock. h11 encodes each request. An ordinary answer is read by one expression, because
each event waits for it. h11 reads every other answer, and alone decides which bytes are not HTTP.

Nothing here decodes a charset or a content coding, because guessing a charset took 0.7 s on 8 MB, and a
coding can be a bomb. So ``Response.text`` must never be used.
"""

import re
from collections.abc import Iterable, Sequence
from datetime import timedelta
from functools import lru_cache
from urllib.parse import urlsplit

import h11
import requests
from requests.cookies import RequestsCookieJar
from requests.structures import CaseInsensitiveDict

from supervisor.adapters.transport.failure import ExchangeFailed, FailureKind

HEAD_BYTES_MAX = 32768  # twice h11's default; parsed in 8 ms at worst (8000 headers without a value)
_NAME, _VALUE = r"[!#$%&'*+.^_`|~0-9A-Za-z-]+", r"[\t -~\x80-\xff]*"
# Without the statuses whose answer never has a body, even if its head declares one.
_ORDINARY = re.compile(rf"HTTP/1\.1 (?!204|304)([2-5][0-9][0-9]) ({_VALUE})((?:\r\n{_NAME}:{_VALUE})*)")
_DECIDES = re.compile(r"\r\n(?:transfer-encoding|connection):", re.IGNORECASE)  # about body and connection
_HEADER = re.compile(rf"\r\n({_NAME}):[\t ]*((?:{_VALUE}[!-~\x80-\xff])?)")


class KeptRequest(requests.PreparedRequest):
    """A request that is encoded once, because it is sent again and again or is prepared ahead."""

    encoded: bytes | None = None  # the bytes. None: the request is not encoded yet

    @classmethod
    def of(cls, request: requests.PreparedRequest) -> "KeptRequest":
        """Return this request as one that is encoded once. No caller may change either of them."""
        kept = cls()
        vars(kept).update(vars(request))
        return kept


class Headers(CaseInsensitiveDict[str]):
    """Headers of which each name comes once, made in one pass because each event waits for them."""

    def __init__(self, pairs: Sequence[tuple[str, str]]) -> None:
        self._store = {name.lower(): (name, value) for name, value in pairs}


class WholeResponse(requests.Response):
    """A response whose body is there. Its jar for cookies is empty, because no code of ours uses cookies."""

    raw = None
    encoding = None
    cookies = RequestsCookieJar()
    elapsed = timedelta()

    def __init__(
        self,
        request: requests.PreparedRequest,
        status: int,
        reason: str,
        headers: "CaseInsensitiveDict[str]",
        body: bytes,
    ) -> None:
        """Set each attribute, because ``Response.__init__`` makes parts that each response here lacks."""
        self.request = request
        self.url = request.url or ""
        self.status_code = status
        self.reason = reason
        self.headers = headers
        self.history = []
        self._content = body
        self._content_consumed = True


def encode(request: requests.PreparedRequest, peer: str) -> bytes:
    """Return head and body of the request for one write. Raises ExchangeFailed if HTTP does not allow it."""
    if isinstance(request, KeptRequest) and request.encoded is not None:
        return request.encoded
    try:
        encoded = _send(_connection(), request)
    except (h11.LocalProtocolError, UnicodeError):
        # h11's text is left out, because it quotes the header, which may be a token.
        text = f"cannot send a request to {peer}: its target or a header has a character that HTTP forbids"
        raise ExchangeFailed(FailureKind.LOCAL, text) from None
    if isinstance(request, KeptRequest):
        request.encoded = encoded
    return encoded


def reader(request: requests.PreparedRequest) -> h11.Connection:
    connection = _connection()
    _send(connection, request)
    return connection


def ordinary_answer(request: requests.PreparedRequest, received: bytes) -> requests.Response | None:
    """Return the answer if these bytes are one whole ordinary answer, and nothing else.

    Ordinary is the answer that Consul gives to most requests: HTTP/1.1 with a body of a declared length, on
    a connection that stays open. None: h11 must read these bytes.
    """
    head, _, body = received.partition(b"\r\n\r\n")
    status, reason, headers = _ordinary_head(head)
    if headers.get("Content-Length") != str(len(body)) or request.method == "HEAD":
        return None
    return WholeResponse(request, status, reason, headers, body)


@lru_cache(16)  # because the answers of one second have equal heads
def _ordinary_head(head: bytes) -> tuple[int, str, Headers]:
    found = _ORDINARY.fullmatch(head.decode("latin-1"))
    pairs = _HEADER.findall(found[3]) if found else []
    headers = Headers(pairs)
    if found is None or len(headers) != len(pairs) or _DECIDES.search(found[3]):
        return 0, "", Headers(())
    return int(found[1]), found[2], headers


def decode(request: requests.PreparedRequest, head: h11.Response, body: bytes) -> requests.Response:
    headers = CaseInsensitiveDict(_joined(head.headers))
    return WholeResponse(request, head.status_code, head.reason.decode("latin-1"), headers, body)


def content_length(head: h11.Response) -> int:
    """Return the length of the body in bytes, as the head declares it. 0: the head does not."""
    length = dict(head.headers).get(b"content-length", b"0")
    return int(length) if length.isdigit() else 0


def _connection() -> h11.Connection:
    return h11.Connection(h11.CLIENT, max_incomplete_event_size=HEAD_BYTES_MAX)


def _send(connection: h11.Connection, request: requests.PreparedRequest) -> bytes:
    assert request.method and request.url and "Transfer-Encoding" not in request.headers
    body = request.body or b""
    assert isinstance(body, bytes), "a body is bytes: requests before 2.32 declares another length for text"
    head = h11.Request(method=str(request.method), target=request.path_url, headers=_headers(request))
    sent = [connection.send(head)]
    if body:
        sent.append(connection.send(h11.Data(data=body)))
    sent.append(connection.send(h11.EndOfMessage()))
    return b"".join(filter(None, sent))


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
