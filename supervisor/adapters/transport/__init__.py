"""An HTTP client over asyncio: messages of requests, one deadline an exchange, bounded sizes, no thread.

A module imports only modules above it.

    failure.py     ExchangeFailed: the reason of an exchange without an answer, in one line
    endpoint.py    where to connect, read from a URL
    messages.py    a PreparedRequest as bytes, the bytes of an answer as a Response
    resolve.py     a name's addresses, looked up by a child that can be killed
    tls.py         an SSLContext that follows its files
    exchange.py    one request, and what has arrived of its answer
    connection.py  one connection: bytes to h11 and back, one exchange at a time
    dial.py        a new connection: name, addresses, TLS
    pool.py        Transport: which connection carries which exchange

This package knows sockets and HTTP, and must never know Consul or the meaning of a request. It must never
repeat a request that the peer may have acted on. The caller interprets a missing answer.
"""

from supervisor.adapters.transport.endpoint import Endpoint
from supervisor.adapters.transport.failure import ExchangeFailed, FailureKind
from supervisor.adapters.transport.messages import KeptRequest
from supervisor.adapters.transport.pool import Transport

__all__ = ["Endpoint", "ExchangeFailed", "FailureKind", "KeptRequest", "Transport"]
