"""A bounded HTTP/1.1 server on the one loop, for whoever has a handler.

    peer.py        who is at the other end of a unix socket
    messages.py    a request, an answer, the limits
    crowd.py       all clients of a server: how many, and whose turn it is
    connection.py  one client: limits, framing, one request at a time
    server.py      HttpServer: any number of sockets, every client of them

It bounds whatever clients may ask of this process (how many, how large, how slow) and knows nothing
of what a request means. ``transport`` is the other side: it asks, this answers.
"""

from supervisor.http_server.messages import Handler, HttpAnswer, HttpRequest, Limits
from supervisor.http_server.peer import Peer
from supervisor.http_server.server import HttpServer

__all__ = ["Handler", "HttpAnswer", "HttpRequest", "HttpServer", "Limits", "Peer"]
