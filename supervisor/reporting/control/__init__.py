"""Commands to the running daemon over a unix socket, both ends.

    protocol.py  commands and replies, and how HTTP carries them
    listener.py  the socket's file: made, guarded by its mode, replaced when a crash left it behind
    users.py     the name of the user who gave a command
    server.py    the daemon's end, which checks the client's user and answers its request
    fetch.py     the client's end, with as few imports as possible

A module imports only modules above it. Commands are accepted on this socket only, never over TCP, and only
from a user whose id the kernel reports. This package does not decide the meaning of a command. It hands each
command to ``execute`` and sends the reply. Neither end is imported here, because a client needs no server.
"""

from supervisor.reporting.control.listener import ControlError
from supervisor.reporting.control.protocol import OperatorCommand, Reply, Result, Verb

__all__ = ["OperatorCommand", "ControlError", "Result", "Reply", "Verb"]
