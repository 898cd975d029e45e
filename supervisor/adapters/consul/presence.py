"""Encodes and decodes each daemon as an instance of one service in Consul's catalog.

The meta of an instance says what its daemon is and which part it has in each item, because Consul tells a
change of meta at once, and defers the output of a check. A pair for each role lists items, separated by
``; ``: a name, and behind a blank what others should know of it. LEFT_OUT counts the items that did not fit.
"""

from collections.abc import Iterable, Mapping
from typing import Any
from urllib.parse import quote

import requests

from supervisor.adapters.consul import permissions, services
from supervisor.adapters.consul.calls import Call, put
from supervisor.adapters.consul.responses import MalformedResponse, is_filtered, json_of, why
from supervisor.core.actions import Role
from supervisor.core.frozen import dataclass
from supervisor.core.requests import PassService, RegisterService

VALUE_BYTES_MAX = 512  # Consul's own limit of a value in a meta
PAIRS_MAX = 16  # with items, of Consul's 64 pairs, because each server keeps those of all nodes
DETAIL_BYTES_MAX = 440  # about one item: with its name it fits into a value; `status` has the whole text
LEFT_OUT = "left-out"
MANUAL = (
    "contend is manual"  # what a node tells of an item for which it waits, and which it takes by word alone
)
# The roles whose items are told first, because they need somebody; then those of which nothing is to be done.
_ORDER = (Role.STUCK, Role.HOLDING, Role.ACQUIRING, Role.LOSING, Role.PAUSED, Role.INELIGIBLE, Role.RESTING)
ROLES = (*_ORDER, Role.WAITING, Role.STOPPED, Role.OBSERVER)
_BETWEEN = "; "


@dataclass(frozen=True, slots=True)
class RegisterPresence(RegisterService):
    """The registration of this daemon. The check that the agent has already stays as it is."""

    # The time after which Consul removes an instance whose check is critical. 0.0: register no check.
    deregister_after_s: float = 0.0


@dataclass(frozen=True, slots=True)
class TellPresence(PassService):
    """``PUT /v1/agent/check/pass/ID``, or ``warn`` of a daemon that is not healthy, with an output."""

    passing: bool = True
    output: str = ""


@dataclass(frozen=True, slots=True)
class Present:
    """One daemon as Consul's catalog shows it."""

    name: str  # its node's own name
    consul_node: str  # the node of its agent
    meta: Mapping[str, str]
    parts: Mapping[str, tuple[str, str]]  # by item: its role, and what it tells of it
    status: str  # the worst of its checks and of those of the agent: passing | warning | critical
    says: str  # the output of that check

    @property
    def left_out(self) -> int:
        """How many items did not fit."""
        told = self.meta.get(LEFT_OUT, "")
        return int(told) if told.isdecimal() and len(told) < 10 else 0


def register(request: RegisterPresence) -> Call:
    service, after_s = request.service, request.deregister_after_s
    body: dict[str, object] = {"ID": service.id, "Name": service.name, "Port": service.port}
    body["Meta"] = {**dict(service.meta), **services.OURS}
    if after_s:
        check = {"TTL": f"{request.ttl_s:g}s", "Status": "passing" if request.passing else "warning"}
        body["Check"] = {**check, "DeregisterCriticalServiceAfter": f"{after_s:g}s"}
    return put("agent/service/register", body)


def tell(request: TellPresence) -> Call:
    path = services.encode(put, f"check/{'pass' if request.passing else 'warn'}/service:")(request).path
    return Call("PUT", path, {"note": request.output}, b"")


def meta_of(facts: Mapping[str, str], parts: Iterable[tuple[str, str, str]]) -> dict[str, str]:
    """Return the meta of an instance: facts about the daemon, and its items. Blank facts are left out.

    parts: of each item its name, its role, and what others should know of it.
    """
    told: dict[str, list[str]] = {}
    for name, role, detail in parts:
        words = cut(" ".join(detail.split()).replace(_BETWEEN, ", "), DETAIL_BYTES_MAX)
        told.setdefault(role, []).append(f"{name} {words}".rstrip())
    meta = {name: cut(value, VALUE_BYTES_MAX) for name, value in facts.items() if value}
    full, left_out = len(meta) + PAIRS_MAX, 0
    for role in ROLES:
        key, number = str(role), 1
        for entry in told.get(role, ()):
            longer = f"{meta[key]}{_BETWEEN}{entry}" if key in meta else entry
            if len(longer.encode()) > VALUE_BYTES_MAX:
                number, longer = number + 1, entry
                key = f"{role}-{number}"
            if key in meta or len(meta) < full:
                meta[key] = longer
            else:
                left_out += 1
    return {**meta, LEFT_OUT: str(left_out)} if left_out else meta


def cut(text: str, bytes_max: int) -> str:
    """Return the beginning of the text, of at most so many bytes."""
    encoded = text.encode(errors="replace")
    whole = len(encoded) <= bytes_max
    return encoded.decode() if whole else encoded[: bytes_max - 3].decode(errors="ignore") + "…"


def parts_of(meta: Mapping[str, str]) -> dict[str, tuple[str, str]]:
    """Return by item the role that this meta gives it, and what it tells of the item."""
    parts = {}
    for key, value in meta.items():
        role, _, number = key.partition("-")
        if role in ROLES and (not number or number.isdigit()):
            for entry in value.split(_BETWEEN):
                name, _, detail = entry.partition(" ")
                parts[name] = (role, detail)
    return parts


def asked_at(service: str) -> str:
    """Return the path below ``/v1/`` at which Consul shows the daemons of this service."""
    return f"health/service/{quote(service, safe='')}"


def shown(service: str, response: requests.Response, token: str) -> list[Present] | str:
    """Return the daemons in an answer of this service, or why Consul does not show them, or not all.

    token: the name of the token in errors.
    """
    try:
        if response.status_code == 403:
            return not_shown(service, permissions.explain(why(response), token, _rules(service)))
        if response.status_code != 200:
            return not_shown(service, why(response))
        found = list(filter(None, map(_present, json_of(response, list))))
    except MalformedResponse as fault:
        return not_shown(service, str(fault))
    except (AttributeError, KeyError, TypeError, ValueError):
        return not_shown(service, "another shape than instances of a service")
    if is_filtered(response) or not found:
        return f"Consul shows no node as the service {service}, or not all; {reads_fleet(service)}"
    return sorted(found, key=lambda each: each.name)


def not_shown(service: str, reason: str) -> str:
    return f"Consul does not show the service {service}: {reason}"


def reads_fleet(service: str) -> str:
    """Return the remedy where a token does not see all daemons."""
    return f"to see all nodes, give the token: {_rules(service)}"


def _rules(service: str) -> str:
    return f'service "{service}" {{ policy = "read" }} node_prefix "" {{ policy = "read" }}'


def _present(entry: dict[str, Any]) -> Present | None:
    """Return the daemon of this instance. None: another program has registered it."""
    meta = {str(key): str(value) for key, value in (entry["Service"]["Meta"] or {}).items()}
    if not meta.items() >= services.OURS.items():
        return None
    bad = ("passing", "warning", "critical")
    worst = max(entry["Checks"] or [{"Status": "passing"}], key=lambda check: bad.index(check["Status"]))
    node = str(entry["Node"]["Node"])
    says = " ".join(str(worst.get("Output") or worst.get("Name", "")).split())
    return Present(meta.get("node") or node, node, meta, parts_of(meta), worst["Status"], says)
