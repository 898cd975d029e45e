"""Whether Consul has the session as it was requested, because the lease counts on its lock-delay.

A session never changes once it is made. If Consul shows a session that differs from the request, a proxy
between this node and Consul changed the request. Without its body, for example, Consul makes a session with a
lock-delay of 15 s, no TTL and the check serfHealth, and a rival may hold before this node has stopped.
"""

from supervisor.core.lease import LOCK_DELAY_MAX_S
from supervisor.core.settings import SessionSettings

SAME_S = 0.001  # durations are sent in whole milliseconds


def differences(asked: SessionSettings, has: SessionSettings) -> str:
    """Name each part in which Consul's session differs from the requested one; blank: none.

    A longer lock-delay counts as no difference, because rivals then wait longer than the lease requires, and
    because a version of Consul may have a smallest lock-delay.
    """
    pairs = (
        ("lock-delay", _guard(asked.lock_delay_s), _guard(min(asked.lock_delay_s, has.lock_delay_s))),
        ("TTL", _time(asked.ttl_s), _time(has.ttl_s)),
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
