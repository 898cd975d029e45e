"""Commands to the running daemon over a unix socket: both ends of it.

    protocol.py  commands and replies, and how HTTP carries them
    listener.py  the socket's file: made, guarded by its mode, replaced when a crash left it behind
    server.py    Control: the daemon's end, which checks who the client is and answers it
    fetch.py     the client's end for requests that only read; imports as little as possible
    client.py    the client's end for commands

A module imports only those above it. Commands are accepted on this socket only, never over TCP, and only
from users whose id the kernel has vouched for. This package does not decide what a command means: it
hands each to ``execute`` and sends the reply. Neither end is imported here, because a client needs no server.
"""

from supervisor.control.listener import ControlError
from supervisor.control.protocol import OperatorCommand, Reply, Result, Verb

__all__ = ["OperatorCommand", "ControlError", "Result", "Reply", "Verb"]
