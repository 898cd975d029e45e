"""The end of whoever asks: one command to the daemon, and its reply."""

import requests

from supervisor.control.commands import Command, Reply, Verb, error_of, reply_of, target_of, told_with
from supervisor.control.fetch import DaemonUnreachable
from supervisor.core.settings import Tls
from supervisor.transport import Endpoint, ExchangeFailed, Transport

__all__ = ["DaemonUnreachable", "ask"]

ASK_S = 10.0  # the daemon replies in milliseconds, unless its machine or its disk hangs
DONE_S = 660.0  # what waits for on_lose and for others; the daemon's own patience ends before


async def ask(socket_path: str, command: Command, *, within_s: float | None = None) -> Reply:
    """What the daemon replies to this command, when it is done. Raises DaemonUnreachable."""
    endpoint = Endpoint("unix", "localhost", 0, socket_path, Tls())
    url, body = endpoint.base_url + target_of(command), told_with(command)
    request = requests.Request("POST", url, data=body).prepare()
    if within_s is None:
        within_s = DONE_S if command.verb in (Verb.STEP_DOWN, Verb.RELOAD) else ASK_S
    transport = Transport(endpoint)
    try:
        response = await transport.exchange(request, timeout_s=within_s, fresh=True)
    except ExchangeFailed as failure:
        raise DaemonUnreachable(f"cannot ask the daemon: {failure}") from None
    finally:
        await transport.close()
    reply = reply_of(response.status_code, response.content)
    if reply is None:
        said = error_of(response.content) or "no reply of a consul-supervisor"
        raise DaemonUnreachable(f"cannot ask the daemon: {response.status_code} {said}")
    return reply
