"""Commands to the running daemon, over a unix socket: both ends of it.

The map, one line a module; each imports only those above it.

    protocol.py  what can be asked and answered, and how HTTP says it
    listener.py  the socket's file: made, guarded by its mode, replaced when a crash left it behind
    server.py    Control: the daemon's end, who may ask and what is asked
    fetch.py     the end of whoever asks, as light as can be; what is asked by those who only look
    client.py    the end of whoever gives a command

Commands come on this socket only, never over TCP, from those alone whom the kernel names. This
package must never decide what a command means: it hands each to ``ask`` and tells the reply. Who only
asks imports no server: neither is imported here.
"""

from supervisor.control.listener import ControlError
from supervisor.control.protocol import Command, Outcome, Reply, Verb

__all__ = ["Command", "ControlError", "Outcome", "Reply", "Verb"]
