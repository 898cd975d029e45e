"""Requests of the core as HTTP messages, responses as outcomes, for one Consul agent.

This module adds what all requests share: address, scope, token. ``endpoints`` knows each class of request.
Nothing here opens a socket, or decides what an outcome means for a tenure. An answer that is not
recognised is ``Unknown``, because a proxy's 404 or a captive portal's 200 must not end or begin a tenure.
"""

from collections.abc import Callable, Mapping, Sequence
from urllib.parse import urlencode

import requests
from requests.auth import HTTPBasicAuth

from supervisor.adapters.consul import permissions, services
from supervisor.adapters.consul.calls import REPEATED_MAX, Call, as_json, get, key_path, put, transaction
from supervisor.adapters.consul.endpoints import endpoint_of, outcome_of
from supervisor.adapters.consul.presence import Present, shown
from supervisor.adapters.consul.responses import MalformedResponse, error_text, failed, unreadable, why
from supervisor.adapters.consul.semaphore import reader_of
from supervisor.adapters.consul.shared.listing import Listing, listed
from supervisor.adapters.consul.shared.query import ListQuery
from supervisor.adapters.consul.token import Token
from supervisor.adapters.transport import KeptRequest
from supervisor.config import ConsulSettings
from supervisor.core import requests as to
from supervisor.core.frozen import replace
from supervisor.core.outcomes import Denied, Failed, Outcome, Refused, Unknown
from supervisor.core.requests import Acquire, ReadKey, Release, RenewSession, Request, ServiceRequest

TOKEN = "X-Consul-Token"
# All that the bytes of a write depend on, but for the index of the free key: the write, and the token.
_Signature = tuple[Acquire | Release, str | None]
INDEX = b'"Index":'  # of the first operation of an acquire; within text of a body, its quotes are escaped
UNKNOWN_INDEX = 10**19  # a number of as many digits as the largest index may have, which no index reaches


class Codec:
    """The encoder and decoder for one Consul agent. ``base_url`` is ``http(s)://HOST:PORT``."""

    def __init__(self, settings: ConsulSettings, base_url: str, token: Token) -> None:
        self._base_url = base_url
        self._token = token
        scope = {"dc": settings.datacenter, "ns": settings.namespace, "partition": settings.partition}
        self._scope = {name: value for name, value in scope.items() if value is not None}
        # In a transaction, namespace and partition are fields of each operation.
        self._transaction_scope = {name: value for name, value in self._scope.items() if name == "dc"}
        within = {"Namespace": settings.namespace, "Partition": settings.partition}
        self._within = {name: value for name, value in within.items() if value is not None}
        self._template = requests.Request("GET", base_url, auth=_authorization(settings)).prepare()
        self._ahead: dict[str, tuple[_Signature, KeptRequest]] = {}
        self._node = ""  # of the agent, by the session that was renewed last
        self._registered: dict[str, str | None] = {}  # see ``services.by_token``
        self._repeated: dict[tuple[type, str, str | None], KeptRequest] = {}

    def prepare(self, action: Acquire | Release) -> KeptRequest:
        """Encode a write ahead, at most one of each item. ``encode`` returns it for an equal write."""
        signature = self._signature(action)
        request = KeptRequest.of(self._encode(signature[0]))
        self._ahead[action.item] = (signature, request)
        return request

    def encode(self, action: Request) -> requests.PreparedRequest:
        """Return the HTTP request for this action, with the token as it is now."""
        if isinstance(action, Acquire | Release) and action.item in self._ahead:
            signature, request = self._ahead.pop(action.item)
            if signature == self._signature(action):
                return _with_index(request, action.index) if isinstance(action, Acquire) else request
        if isinstance(action, ReadKey | RenewSession):
            what = action.key if isinstance(action, ReadKey) else action.session
            return self._kept(type(action), what, lambda: self._encode(action))
        return self._encode(action)

    def _kept(self, kind: type, what: str, encoded: Callable[[], requests.PreparedRequest]) -> KeptRequest:
        """Return the kept request of this kind, because a holder sends equal requests again and again."""
        kept = (kind, what, self._token.value())
        request = self._repeated.get(kept)
        if request is None:
            if len(self._repeated) >= REPEATED_MAX:
                self._repeated.clear()
            request = self._repeated[kept] = KeptRequest.of(encoded())
        return request

    def question(self, path: str, body: object | None = None) -> requests.PreparedRequest:
        """Return an HTTP request that is no action of the core: a GET, or a PUT when ``body`` is given."""
        return self._request(get(path) if body is None else put(path, body))

    def transaction(self, operations: Sequence[Mapping[str, object]]) -> requests.PreparedRequest:
        """Encode a transaction that is no action of the core. The caller decodes the answer."""
        return self._request(transaction(operations))

    def encode_list(self, query: ListQuery) -> requests.PreparedRequest:
        def listed(waits: Mapping[str, str]) -> requests.PreparedRequest:
            mode = {"consistent": ""} if query.consistent else {"stale": ""} if query.is_stale else {}
            return self._request(get(key_path(query.prefix), {"recurse": "", **waits, **mode}))

        if query.index is None:  # a holder's read, again and again
            return self._kept(ListQuery, f"{query.consistent} {query.prefix}", lambda: listed({}))
        return listed({"index": str(query.index), "wait": f"{query.wait_s:g}s"})

    def decode_list(self, query: ListQuery, response: requests.Response) -> Listing | Unknown | Denied | None:
        """Return the list, or why there is none. None: Consul refuses the list, and may answer for one key.

        Never raises, even for a malformed answer.
        """
        if response.status_code == 403:
            if permissions.UNKNOWN_TOKEN not in error_text(response):
                return None
            words = why(response)
            return Denied(permissions.explain(words, self._token.called, ""), words)
        try:
            if response.status_code in (200, 404):
                return listed(response, query.prefix)
        except MalformedResponse as error:
            return unreadable(error)
        return failed(response)

    def decode_present(self, service: str, response: requests.Response) -> list[Present] | str:
        return shown(service, response, self._token.called)

    def slots_in_parts(self, prefix: str, responses: Sequence[requests.Response]) -> Outcome:
        """Return the outcome of single reads of keys below this prefix."""
        for response in responses:
            if response.status_code not in (200, 404):
                return failed(response)
        try:
            return reader_of(prefix).view_in_parts(responses)
        except MalformedResponse as error:
            return unreadable(error)

    def decode(self, action: Request, response: requests.Response) -> Outcome:
        """Return the outcome of this answer. Never raises, even for a malformed answer."""
        outcome = outcome_of(action, response)
        self._node = getattr(outcome, "node", None) or self._node
        if isinstance(action, ServiceRequest):
            sent = response.request.headers.get(TOKEN)
            outcome = services.by_token(self._registered, action, outcome, sent)
        if isinstance(outcome, Denied):
            words = outcome.why
            rule = endpoint_of(action).rule(action)
            return Denied(permissions.explain(words, self._token.called, rule), words)
        if isinstance(outcome, Refused | Failed) and (remedy := permissions.agent_remedy(outcome.why)):
            return type(outcome)(f"{outcome.why}: {remedy}")
        return outcome

    def _signature(self, action: Acquire | Release) -> _Signature:
        if isinstance(action, Acquire) and action.index:
            action = replace(action, index=UNKNOWN_INDEX)
        return replace(action, at=0.0, timeout_s=0.0), self._token.value()

    def _encode(self, action: Request) -> requests.PreparedRequest:
        if isinstance(action, to.FindService):
            action = replace(action, node=self._node)
        return self._request(endpoint_of(action).encode(action))

    def _request(self, call: Call) -> requests.PreparedRequest:
        request = self._template.copy()
        scope, body = self._scope, call.body
        if call.operations:
            scope = self._transaction_scope
            placed = [{**operation, **self._within} for operation in call.operations]
            reads = [{"Check": {"Verb": "get", "Check": each}} for each in placed if "CheckID" in each]
            body = as_json(reads or [{"KV": each} for each in placed])
        parameters = urlencode({**scope, **call.query})
        request.method = call.method
        request.url = f"{self._base_url}/v1/{call.path}" + (f"?{parameters}" if parameters else "")
        token = self._token.value()
        if token is not None:
            request.headers[TOKEN] = token
        if body is not None:
            request.body = body
            # Consul ignores a body without Content-Length, and would create a session without a TTL.
            request.headers["Content-Length"] = str(len(body))
            request.headers["Content-Type"] = call.content_type
        return request


def _with_index(request: KeptRequest, index: int) -> KeptRequest:
    """Return an acquire that was prepared before its key was free, with the index of the free key.

    Spaces fill the number, so that the declared length of the body stays true.
    """
    unknown, known = b"%s%d" % (INDEX, UNKNOWN_INDEX), b"%s%20d" % (INDEX, index)
    assert isinstance(request.body, bytes), "a transaction has a body"
    request.body = request.body.replace(unknown, known, 1)
    if request.encoded is not None:
        request.encoded = request.encoded.replace(unknown, known, 1)
    return request


def _authorization(settings: ConsulSettings) -> HTTPBasicAuth | None:
    """Return the basic authentication for a proxy, as Consul's command line sends it."""
    if settings.http_auth is None:
        return None
    user, _, password = settings.http_auth.encode("utf-8", "surrogateescape").partition(b":")
    return HTTPBasicAuth(user, password)
