"""The client's end for commands, which sends one command to the daemon and returns the reply."""

from supervisor.reporting.control.fetch import DaemonUnreachable, exchange
from supervisor.reporting.control.protocol import (
    OperatorCommand,
    Reply,
    Verb,
    error_of,
    reply_of,
    request_body,
    request_path,
)

__all__ = ["DaemonUnreachable", "ask"]

ASK_S = 10.0  # the daemon replies in milliseconds, unless its machine or its disk hangs
DONE_S = 660.0  # step-down and reload wait for on_lose and for other nodes; the daemon's own limit is shorter


def ask(socket_path: str, command: OperatorCommand, *, within_s: float | None = None) -> Reply:
    """Send the command, and return the daemon's reply once the command is done or has failed.

    within_s: how long to wait. None: ASK_S, or DONE_S for a command that takes long.
    Raises DaemonUnreachable.
    """
    if within_s is None:
        within_s = DONE_S if command.verb in (Verb.STEP_DOWN, Verb.RELOAD) else ASK_S
    code, body = exchange(
        socket_path, "POST", request_path(command), request_body(command), within_s=within_s
    )
    reply = reply_of(code, body)
    if reply is None:
        why = error_of(body) or "not a reply of a consul-supervisor"
        raise DaemonUnreachable(f"cannot ask the daemon: {code} {why}")
    return reply
