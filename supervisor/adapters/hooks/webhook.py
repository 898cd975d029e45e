"""Sends webhooks: the event, or the operator's own body with facts of the event, signed with a secret.

An outcome is a short text for the log. No path, query or user of the URL, no header, body or secret may ever
be part of an outcome, because the path of a webhook's URL is often its password.
"""

import asyncio
import http
import time
from collections.abc import Callable, Mapping

import requests
from requests.structures import CaseInsensitiveDict

from supervisor import __version__
from supervisor.adapters.filesystem.children import WITHIN_S
from supervisor.adapters.hooks import signature
from supervisor.adapters.hooks.context import as_json
from supervisor.adapters.hooks.shortage import RETRY_PAUSE_S, is_passing
from supervisor.adapters.transport import Endpoint, ExchangeFailed, Transport
from supervisor.config.formats import templates
from supervisor.config.formats.templates import Fact
from supervisor.core.settings import Webhook

RESPONSE_BYTES_MAX = 1 << 20  # the body is ignored, so a receiver that sends more is the wrong one


class Webhooks:
    """All webhooks of this process, each sent over a connection of its own.

    The resolved name of a receiver and the loaded certificates are kept for its next webhook.
    """

    def __init__(self) -> None:
        self._transports: dict[Endpoint, Transport] = {}

    async def send(
        self,
        webhook: Webhook,
        event_facts: Mapping[str, Fact],
        timeout_s: float,
        lacks: Callable[[OSError], None] = lambda error: None,
    ) -> tuple[bool, str]:
        """Send the event once, within ``timeout_s``. A redirect is not followed and counts as a refusal.

        Return whether the receiver accepted it (any 2xx), and the status or why there is none.
        lacks: receives the error when this machine has no means for the first try. Further tries follow.
        """
        loop = asyncio.get_running_loop()
        end_by, first = loop.time() + timeout_s, True
        while True:
            outcome, error = await self._send(webhook, event_facts, end_by)
            if error is None or not is_passing(error) or loop.time() + RETRY_PAUSE_S >= end_by:
                return outcome
            if first:
                lacks(error)
            first = False
            await asyncio.sleep(RETRY_PAUSE_S)

    async def _send(
        self, webhook: Webhook, event_facts: Mapping[str, Fact], end_by: float
    ) -> tuple[tuple[bool, str], OSError | None]:
        """Return the outcome, and the system's error if one ended the try before anything was sent."""
        clock = asyncio.get_running_loop().time
        try:
            request = await _prepared(webhook, event_facts, min(WITHIN_S, end_by - clock()))
            transport = self._transport(webhook)
        except signature.SecretUnusable as error:
            return (False, str(error)), _cause(error)
        except templates.Unfit as error:
            return (False, f"cannot send: {error.key[0]} cannot be filled in: {error}"), None
        except (requests.RequestException, ValueError) as error:
            # The messages of these errors quote the URL or the header.
            return (False, f"cannot send: its url or a header is unusable ({type(error).__name__})"), None
        try:
            response = await transport.exchange(request, timeout_s=end_by - clock(), fresh=True)
        except ExchangeFailed as error:
            return (False, str(error)), _cause(error)
        return (200 <= response.status_code < 300, _described(response.status_code)), None

    async def close(self) -> None:
        for transport in self._transports.values():
            await transport.close()
        self._transports.clear()

    def _transport(self, webhook: Webhook) -> Transport:
        endpoint = Endpoint.of(webhook.url, webhook.tls)
        if endpoint not in self._transports:
            self._transports[endpoint] = Transport(endpoint, body_bytes_max=RESPONSE_BYTES_MAX)
        return self._transports[endpoint]


def _cause(error: BaseException) -> OSError | None:
    return error.__cause__ if isinstance(error.__cause__, OSError) else None


async def _prepared(
    webhook: Webhook, event_facts: Mapping[str, Fact], within_s: float
) -> requests.PreparedRequest:
    webhook = templates.filled(webhook, event_facts)
    body = as_json(event_facts) if webhook.body is None else webhook.body.encode()
    headers = CaseInsensitiveDict(
        {"User-Agent": f"consul-supervisor/{__version__}", "Content-Type": "application/json"}
    )
    headers.update(webhook.headers)
    if webhook.secret_file is not None:
        secrets = await signature.secrets_of(webhook.secret_file, within_s)
        headers.update(signature.headers(secrets, str(event_facts["transition"]), int(time.time()), body))
    return requests.Request(webhook.method, webhook.url, headers=headers, data=body).prepare()


def _described(status: int) -> str:
    """Return the status in our own words, because the words of the receiver might quote the request."""
    try:
        phrase = f"{status} {http.HTTPStatus(status).phrase}"
    except ValueError:
        phrase = str(status)
    return f"{phrase}: redirects are not followed" if 300 <= status < 400 else phrase
