"""The reasons for which the hooks of each event are called; the page of hooks lists them."""

from collections.abc import Mapping

from supervisor.core.actions import Reason

REASONS: Mapping[str, tuple[Reason, ...]] = {  # the first of each event is the usual one
    "acquire": (Reason.ACQUIRED, Reason.ADOPTED),
    "lose": (
        Reason.SHUTDOWN,
        Reason.STEP_DOWN,
        Reason.SESSION_INVALIDATED,
        Reason.RELEASED_BY_OPERATOR,
        Reason.LOCK_GONE,
        Reason.SESSION_ALTERED,
        Reason.KEY_DELETED,
        Reason.SLOT_REMOVED,
        Reason.LEASE_EXPIRED,
        Reason.ACQUIRE_FAILED,
        Reason.RUN_EXITED,
        Reason.UNHEALTHY,
        Reason.MAINTENANCE,
        Reason.CRASHED,
        Reason.CONFIG_CHANGED,
    ),
    "lose-failure": (Reason.LOSE_FAILED,),
    "change": (Reason.LEADER_CHANGED, Reason.VALUE_CHANGED, Reason.INITIAL),
    "check": (Reason.SCHEDULED,),
}
