"""The election or semaphore of one command line, whose command is the run child."""

from collections.abc import Mapping, Sequence
from typing import Any

from supervisor.config import build
from supervisor.config.defaults import apply_defaults
from supervisor.config.environment import Variables
from supervisor.config.formats.durations import format_duration
from supervisor.config.lease_checks import room_sum
from supervisor.config.schema import Defaults, document
from supervisor.core.frozen import replace
from supervisor.core.lease import ROOM_MIN_S, lease_of, sufficient_lockout_s
from supervisor.core.settings import Command, ElectionSettings, ItemSettings, Run
from supervisor.errors import OperatorError

SESSION_NAMES = "consul-supervisor:lock "  # no item has a blank in its name, so no item shares these names


class NoRoom(OperatorError):
    """The lock-delay is too short to end the command before another node may hold."""


def lock_settings(
    *,
    key: str,
    limit: int | None,
    argv: Sequence[str],
    times: Mapping[str, float | None],
    stop_timeout_s: float,
    environ: Mapping[str, str],
    hostname: str,
) -> ItemSettings:
    """Return the settings of the election or semaphore. Raises NoRoom.

    key: the key, or the prefix of a semaphore.
    limit: how many may hold a slot of the semaphore. None: it is a key.
    times: ``ttl`` and ``lock_delay`` of the session, in seconds. None: the default of a file.
    stop_timeout_s: the time between TERM and KILL after a loss.
    """
    section, names = ("elections", "key") if limit is None else ("semaphores", "prefix")
    session = {"name": f"{SESSION_NAMES}{key}"}
    session |= {name: f"{length_s:.3f}s" for name, length_s in times.items() if length_s is not None}
    given: dict[str, Any] = {names: key, "session": session}
    data: dict[str, Any] = {"elections": {}, "semaphores": {}}
    data[section][key] = given if limit is None else {**given, "limit": limit}
    defaults = Defaults(document())
    values = build.default_values(defaults, Variables(environ, hostname))
    full = apply_defaults(data, defaults, values, hostname)[section][key]
    built = build.election(full) if limit is None else build.semaphore(full)
    if isinstance(built, ElectionSettings):
        built = replace(built, only_locks=True)
    settings = replace(built, run=Run(Command(tuple(argv)), stop_timeout_s))
    lease = lease_of(settings)
    if lease.room_s < ROOM_MIN_S:
        room_s, least_s = format_duration(lease.room_s), format_duration(ROOM_MIN_S)
        enough_s = sufficient_lockout_s(settings, ROOM_MIN_S)
        raise NoRoom(
            f"cannot end the command before another node may hold {key}: room would be "
            f"{room_sum(settings)} = {room_s}, at least {least_s} are needed; "
            f"set --lock-delay to {enough_s}s or more"
        )
    return settings
