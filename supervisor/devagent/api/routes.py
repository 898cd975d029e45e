"""Which path and method goes where, and what is answered before any handler is asked."""

import posixpath
from collections.abc import Callable
from dataclasses import dataclass
from html import escape
from urllib.parse import quote, unquote_to_bytes

from supervisor.devagent.api import agent, kv, sessions, txn
from supervisor.devagent.api.call import ESCAPE, Answered, Ask, Call, Settings, read_parameters, refusal, text
from supervisor.devagent.messages import Answer, Refused, Request
from supervisor.devagent.store import Store

HTML = ("Content-Type", "text/html; charset=utf-8")
UNESCAPED = "/$&+,:;=@~"  # what Go's URL.String leaves as it is in a path, besides letters and digits
Handler = Callable[[Call], Answer | Ask]


@dataclass(frozen=True, slots=True)
class Route:
    """A path, or what a path begins with if it ends with a slash."""

    methods: tuple[str, ...]
    handler: Handler


ROUTES = {
    "/v1/kv/": Route(("GET", "PUT", "DELETE"), kv.kv),
    "/v1/txn": Route(("PUT",), txn.transaction),
    "/v1/session/create": Route(("PUT",), sessions.create),
    "/v1/session/renew/": Route(("PUT",), sessions.renew),
    "/v1/session/destroy/": Route(("PUT",), sessions.destroy),
    "/v1/session/info/": Route(("GET",), sessions.info),
    "/v1/session/node/": Route(("GET",), sessions.of_node),
    "/v1/session/list": Route(("GET",), sessions.listed),
    "/v1/status/leader": Route(("GET",), agent.leader),
    "/v1/status/peers": Route(("GET",), agent.peers),
    "/v1/agent/self": Route(("GET",), agent.this),
    "/v1/agent/checks": Route(("GET",), agent.checks),
    "/v1/agent/services": Route(("GET",), agent.services),
    "/v1/agent/check/register": Route(("PUT",), agent.register_check),
    "/v1/agent/check/deregister/": Route(("PUT",), agent.deregister_check),
    "/v1/agent/check/pass/": Route(("PUT",), agent.pass_check),
    "/v1/agent/check/warn/": Route(("PUT",), agent.warn_check),
    "/v1/agent/check/fail/": Route(("PUT",), agent.fail_check),
    "/v1/agent/check/update/": Route(("PUT",), agent.update_check),
    "/v1/agent/service/register": Route(("PUT",), agent.register_service),
    "/v1/agent/service/deregister/": Route(("PUT",), agent.deregister_service),
    "/v1/health/node/": Route(("GET",), agent.health),
    "/v1/catalog/nodes": Route(("GET",), agent.nodes),
}


def respond(request: Request, store: Store, settings: Settings, now: float, has_leader: bool) -> Answer | Ask:
    """What becomes of a request. Raises NoLeader when it has to be held, with nothing written."""
    raw_path, _, query = request.target.partition("?")
    if ESCAPE.search(raw_path):
        return text(400, "400 Bad Request", close=True)
    raw = unquote_to_bytes(raw_path)
    path = raw.decode("utf-8", "surrogateescape")
    if not raw.decode("utf-8", "replace").isprintable():
        return Answer(400)
    clean = _clean(path)
    if clean != path:
        return _moved(clean, query, request.method)
    prefix, route = _route(path)
    if route is None:
        words = "" if path == "/" else "the embedded agent has no such endpoint"
        return text(200, "embedded agent") if path == "/" else text(404, words)
    if request.method == "OPTIONS":
        return Answer(200, headers=(_allow(route),))
    if request.method not in route.methods:
        refused = text(405, f"method {request.method} not allowed")
        return Answer(405, refused.body, (*refused.headers, _allow(route)))
    try:
        parameters = read_parameters(query)
    except ValueError:
        return Answer(500)
    call = Call(request, store, settings, now, has_leader, path[len(prefix) :], parameters)
    try:
        return route.handler(call)
    except Refused as refused:
        return refusal(settings, str(refused))
    except Answered as answered:
        return answered.answer


def _route(path: str) -> tuple[str, Route | None]:
    if path in ROUTES:
        return path, ROUTES[path]
    for prefix, route in ROUTES.items():
        if prefix.endswith("/") and path.startswith(prefix):
            return prefix, route
    return path, None


def _allow(route: Route) -> tuple[str, str]:
    return ("Allow", ",".join(("OPTIONS", *route.methods)))


def _clean(path: str) -> str:
    """The path without empty segments, dots and double dots; Consul answers others with a redirect."""
    slash = "/" if path.endswith("/") else ""
    clean = posixpath.normpath("/" + path.lstrip("/"))
    clean = clean if clean == "/" else clean + slash
    return clean + "/" if clean + "/" in ROUTES and clean not in ROUTES else clean


def _moved(path: str, query: str, method: str) -> Answer:
    quoted = quote(path.encode("utf-8", "surrogateescape"), safe=UNESCAPED)
    location = f"{quoted}?{query}" if query else quoted
    if method not in ("GET", "HEAD"):
        return Answer(301, headers=(("Location", location),))
    body = f'<a href="{escape(location)}">Moved Permanently</a>.\n\n'
    return Answer(301, body.encode(), (HTML, ("Location", location)))
