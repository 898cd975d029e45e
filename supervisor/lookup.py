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


async def key_now(settings: ConsulSettings, key: str) -> KeyView:
    """The key, read consistently: as it was at some moment between the question and the answer.

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
    return outcome


def why_not_held(view: KeyView, session: str, lock_index: int | None) -> str:
    """Blank when this session holds the key since it was locked at ``lock_index``; else why not.

    A plain PUT over a held key leaves the lock and sets its LockIndex to 0: then the session alone
    decides. Any other difference tells of a lock that was given up and taken anew.
    """
    if not view.session:
        return "nobody holds it"
    if view.session != session:
        return "another session holds it"
    if lock_index is not None and view.lock_index not in (lock_index, 0):
        return f"the session has locked it anew: its LockIndex is {view.lock_index}, not {lock_index}"
    return ""
