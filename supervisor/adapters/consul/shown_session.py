"""A session as Consul's answers show it, compared with the one that was requested.

The lease counts on the lock-delay of the session. A session never changes once it is made. If Consul shows
one that differs from the request, a proxy between this node and Consul changed the request. Without its body,
for example, Consul makes a session with a lock-delay of 15 s, no TTL and the check serfHealth, and a rival
may hold before this node has stopped.
"""

import re
from typing import Any

from supervisor.adapters.consul.responses import MalformedResponse, number, text
from supervisor.config.formats.durations import parse_duration
from supervisor.core.lease import LOCK_DELAY_MAX_S
from supervisor.core.outcomes import SessionAlive, SessionAltered
from supervisor.core.settings import SessionSettings

CHANGED = (
    "a proxy between this node and Consul changes requests: ask Consul's agent directly (consul.address)"
)
SAME_S = 0.001  # durations are sent in whole milliseconds
UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")


def new_id(entry: object) -> str:
    """Return the ID of a new session. It must be a UUID, because it becomes part of paths and records."""
    session = text(entry, "ID")
    if not UUID.fullmatch(session):
        raise MalformedResponse("the ID of the new session is no UUID")
    return session


def compare_session(entry: Any, requested: SessionSettings) -> SessionAlive | SessionAltered:
    """Return SessionAlive when the session in this answer has the requested settings, else SessionAltered."""
    different = differences(requested, _settings(entry))
    if different:
        return SessionAltered(f"{different}; {CHANGED}")
    return SessionAlive(text(entry, "Node", "") or None)


def _settings(entry: Any) -> SessionSettings:
    behavior = text(entry, "Behavior")
    if behavior not in ("release", "delete"):
        raise MalformedResponse("no Behavior")
    return SessionSettings(
        name=text(entry, "Name", ""),
        ttl_s=_ttl_s(text(entry, "TTL", "")),
        lock_delay_s=number(entry, "LockDelay") / 1e9,
        behavior="release" if behavior == "release" else "delete",
        node_checks=(*_checks(entry, "NodeChecks"), *_checks(entry, "Checks")),
        service_checks=tuple(text(check, "ID") for check in _list(entry, "ServiceChecks")),
    )


def _ttl_s(shown: str) -> float | None:
    """Return the TTL in seconds. None: the session has no TTL, which Consul also shows as a TTL of 0."""
    try:
        return (parse_duration(shown) if shown else 0.0) or None
    except ValueError:
        raise MalformedResponse("a TTL that is no duration") from None


def _checks(entry: Any, name: str) -> tuple[str, ...]:
    checks = _list(entry, name)
    if not all(isinstance(check, str) for check in checks):
        raise MalformedResponse(f"no {name}")
    return tuple(checks)


def _list(entry: Any, name: str) -> list[Any]:
    """Return a list field of the entry. Consul shows an empty list as null, or leaves the field out."""
    value = entry.get(name)
    if value is None:
        return []
    if not isinstance(value, list):
        raise MalformedResponse(f"no {name}")
    return value


def differences(asked: SessionSettings, has: SessionSettings) -> str:
    """Name each part in which Consul's session differs from the requested one; blank: none.

    A longer lock-delay counts as no difference, because rivals then wait longer than the lease requires, and
    because a version of Consul may have a smallest lock-delay. Nor does a longer TTL, which Consul may answer
    under load: the session then lives longer than this node needs.
    """
    ttl_s = has.ttl_s if None in (asked.ttl_s, has.ttl_s) else min(asked.ttl_s or 0.0, has.ttl_s or 0.0)
    pairs = (
        ("lock-delay", _guard(asked.lock_delay_s), _guard(min(asked.lock_delay_s, has.lock_delay_s))),
        ("TTL", _time(asked.ttl_s), _time(ttl_s)),
        ("behavior", asked.behavior, has.behavior),
        ("node checks", _names(asked.node_checks), _names(has.node_checks)),
        ("service checks", _names(asked.service_checks), _names(has.service_checks)),
    )
    return ", ".join(
        f"{name} {there} instead of {wanted}" for name, wanted, there in pairs if there != wanted
    )


def _guard(lock_delay_s: float) -> str:
    """Return the lock-delay that Consul applies, which is at most 60 s even if Consul stores more."""
    return _time(min(lock_delay_s, LOCK_DELAY_MAX_S))


def _time(length_s: float | None) -> str:
    return "none" if length_s is None else f"{round(length_s / SAME_S) * SAME_S:g} s"


def _names(checks: tuple[str, ...]) -> str:
    return " and ".join(sorted(set(checks))) or "none"
