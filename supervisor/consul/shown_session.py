"""A session as Consul's answers show it, compared with the one that was asked for.

Functions that read an answer raise MalformedResponse where it is no answer of Consul.
"""

import re
from typing import Any

from supervisor.consul.responses import MalformedResponse, number, text
from supervisor.core.asked import differences
from supervisor.core.outcomes import SessionAlive, SessionAltered
from supervisor.core.settings import SessionSettings
from supervisor.formats.durations import parse_duration

CHANGED = (
    "a proxy between this node and Consul changes requests: ask Consul's agent directly (consul.address)"
)
UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")


def new_id(entry: object) -> str:
    """The ID of a session that Consul has made; what is no UUID would stand in paths and in records."""
    session = text(entry, "ID")
    if not UUID.fullmatch(session):
        raise MalformedResponse("the ID of the new session is no UUID")
    return session


def as_asked(entry: Any, asked: SessionSettings) -> SessionAlive | SessionAltered:
    """Whether the session in this answer is the one that was asked for."""
    different = differences(asked, _settings(entry))
    return SessionAltered(f"{different}; {CHANGED}") if different else SessionAlive()


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
    """A TTL of 0 is none, too."""
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
    """An empty list may be null, or be left out."""
    value = entry.get(name)
    if value is None:
        return []
    if not isinstance(value, list):
        raise MalformedResponse(f"no {name}")
    return value
