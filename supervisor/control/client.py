"""The end of whoever asks: one command to the daemon, and its reply."""

import requests

from supervisor.control.commands import Command, Reply, error_of, reply_of, target_of
from supervisor.core.settings import Tls
from supervisor.transport import Endpoint, ExchangeFailed, Transport

ASK_S = 10.0  # the daemon replies in milliseconds, unless its machine or its disk hangs


class DaemonUnreachable(Exception):
    """The daemon did not reply, so it is not known whether it did what was asked; the text says why."""


async def ask(socket_path: str, command: Command, *, within_s: float = ASK_S) -> Reply:
    """What the daemon replies to this command. Raises DaemonUnreachable."""
    endpoint = Endpoint("unix", "localhost", 0, socket_path, Tls())
    request = requests.Request("POST", endpoint.base_url + target_of(command)).prepare()
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
