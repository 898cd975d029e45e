"""The paths and methods of the API, and what is answered before a handler gets a request."""

import posixpath
from collections.abc import Callable, Mapping
from dataclasses import replace
from urllib.parse import parse_qsl, unquote_to_bytes

from supervisor.rehearsal.devagent.api import handlers
from supervisor.rehearsal.devagent.api.call import ApiReply, ApiRequest, Ask, Settings, refusal, text
from supervisor.rehearsal.devagent.kv import Rejected
from supervisor.rehearsal.devagent.store import Store
from supervisor.reporting.http_server import HttpAnswer, HttpRequest

Handler = Callable[[ApiRequest], HttpAnswer | Ask]

# Paths, each with the handler of each method. A path that ends with a slash is followed by a key or an id.
ROUTES: Mapping[str, Mapping[str, Handler]] = {
    "/v1/kv/": {"GET": handlers.read_key, "PUT": handlers.write_key, "DELETE": handlers.delete_key},
    "/v1/txn": {"PUT": handlers.transaction},
    "/v1/session/create": {"PUT": handlers.create_session},
    "/v1/session/renew/": {"PUT": handlers.renew_session},
    "/v1/session/destroy/": {"PUT": handlers.destroy_session},
    "/v1/session/info/": {"GET": handlers.session_of},
    "/v1/session/node/": {"GET": handlers.sessions_of_node},
    "/v1/session/list": {"GET": handlers.all_sessions},
    "/v1/status/leader": {"GET": handlers.leader},
    "/v1/status/peers": {"GET": handlers.peers},
    "/v1/agent/self": {"GET": handlers.this_agent},
    "/v1/agent/checks": {"GET": handlers.checks},
    "/v1/agent/check/pass/": {"PUT": handlers.pass_check},
    "/v1/agent/check/fail/": {"PUT": handlers.pass_check},
    "/v1/agent/service/register": {"PUT": handlers.register},
    "/v1/agent/service/deregister/": {"PUT": handlers.deregister},
    "/v1/agent/service/": {"GET": handlers.service},
}
OF_NAMESPACES = ("/v1/kv/", "/v1/session/")
NAMESPACE = 'Invalid query parameter: "ns" - Namespaces are a Consul Enterprise feature'


def respond(
    request: HttpRequest, node: str, store: Store, settings: Settings, now: float
) -> HttpAnswer | Ask:
    """Answer a request to the agent of this node, or return the read that it asks for."""
    raw_path, _, query = request.target.partition("?")
    try:
        path = unquote_to_bytes(raw_path).decode()
    except UnicodeDecodeError:
        return text(400, "the embedded agent has only keys in UTF-8")
    if not path.isprintable():
        return HttpAnswer(400)
    if posixpath.normpath(path) != path.removesuffix("/"):
        return text(400, "the embedded agent has no paths with an empty segment, . or ..")
    if path == "/v1/kv":
        return HttpAnswer(301, headers=(("Location", request.target.replace("/v1/kv", "/v1/kv/", 1)),))
    routes = (each for each in ROUTES if path == each or (each.endswith("/") and path.startswith(each)))
    route = next(routes, None)
    if route is None:
        return text(404, "the embedded agent has no such endpoint")
    handler = ROUTES[route].get(request.method)
    if handler is None:
        allow = ("Allow", ",".join(("OPTIONS", *ROUTES[route])))
        refused = text(405, f"method {request.method} not allowed")
        answer = HttpAnswer(200) if request.method == "OPTIONS" else refused
        return replace(answer, headers=(*answer.headers, allow))
    parameters = dict(reversed(parse_qsl(query, keep_blank_values=True)))  # the first of a name counts
    if parameters.get("ns") and route.startswith(OF_NAMESPACES):
        return text(400, f"Bad request: {NAMESPACE}")
    try:
        return handler(ApiRequest(request, node, store, settings, now, path.removeprefix(route), parameters))
    except Rejected as refused:
        return refusal(settings, str(refused))
    except ApiReply as answered:
        return answered.answer
