"""A bounded HTTP/1.1 server on the one loop, which calls one handler for each request.

    messages.py    a request, the process that sent it, an answer, the limits
    client_pool.py all clients of a server: how many, and whose request is read next
    connection.py  one client: limits, framing, one request at a time
    server.py      HttpServer: any number of sockets, all their clients

The server limits the number, the size and the duration of requests. It must never know what a request means.
"""

from supervisor.reporting.http_server.messages import Handler, HttpAnswer, HttpRequest, Limits, Peer
from supervisor.reporting.http_server.server import HttpServer

__all__ = ["Handler", "HttpAnswer", "HttpRequest", "HttpServer", "Limits", "Peer"]
