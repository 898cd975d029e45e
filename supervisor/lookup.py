"""One question to Consul and its answer, for commands that run without the daemon."""

from supervisor.config import ConsulSettings
from supervisor.consul import Consul
from supervisor.core.actions import ReadKey
from supervisor.core.events import KeyView
from supervisor.token import Token
from supervisor.transport import Endpoint, ExchangeFailed, Transport

LOOKUP_S = 10.0  # Consul holds a request for 7 s while it has no leader


class LookupFailed(Exception):
    """Consul did not tell; the text says why."""


async def leader_of(settings: ConsulSettings, key: str) -> bytes | None:
    """The value of the key's holder, read consistently; None when nobody holds the key.

    Raises LookupFailed when Consul cannot be reached or does not answer, TokenError when the
    token file cannot be used.
    """
    endpoint = Endpoint.of(settings.address, settings.tls)
    consul = Consul(settings, endpoint.base_url, Token(settings))
    question = ReadKey("", 0.0, LOOKUP_S, key)
    transport = Transport(endpoint)
    try:
        response = await transport.exchange(consul.encode(question), timeout_s=LOOKUP_S, fresh=True)
    except ExchangeFailed as failure:
        raise LookupFailed(f"cannot ask Consul: {failure}") from None
    finally:
        await transport.close()
    outcome = consul.decode(question, response)
    if not isinstance(outcome, KeyView):
        raise LookupFailed(f"cannot read {key}: Consul answers {getattr(outcome, 'why', outcome)}")
    return outcome.leader
