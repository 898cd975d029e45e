"""The election or semaphore of one command line, with the defaults of a file.

The command line has no hooks. It has a command, which becomes the run child.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from supervisor.config import build
from supervisor.config.defaults import apply_defaults
from supervisor.config.environment import Variables
from supervisor.config.formats.durations import format_duration
from supervisor.config.lease_checks import room_sum
from supervisor.config.schema import Defaults, document
from supervisor.core.frozen import dataclass, replace
from supervisor.core.lease import ROOM_MIN_S, lease_of, sufficient_lockout_s
from supervisor.core.settings import Command, ElectionSettings, ItemSettings, Run
from supervisor.errors import OperatorError

SESSION_NAMES = "consul-supervisor:lock "  # no item has a blank in its name, so no item shares these names


@dataclass(frozen=True, slots=True)
class LockLine:
    """The lock and the command that the command line of ``lock`` names."""

    key: str  # the key, or the prefix of a semaphore
    limit: int | None  # how many may hold a slot of the semaphore. None: it is a key
    argv: Sequence[str]  # the command
    ttl: str | None  # of the session, such as 10s. None: the default of a file
    lock_delay: str | None  # likewise
    stop_timeout_s: float  # the time between TERM and KILL after a loss


class NoRoom(OperatorError):
    """The lock-delay is too short to end the command before another node may hold."""


def lock_settings(line: LockLine, environ: Mapping[str, str], hostname: str) -> ItemSettings:
    """Return the settings of the election or semaphore. Raises NoRoom."""
    section, names = ("elections", "key") if line.limit is None else ("semaphores", "prefix")
    session: dict[str, Any] = {"name": f"{SESSION_NAMES}{line.key}"}
    session |= {
        name: text for name, text in (("ttl", line.ttl), ("lock_delay", line.lock_delay)) if text is not None
    }
    given: dict[str, Any] = {names: line.key, "session": session}
    data: dict[str, Any] = {"elections": {}, "semaphores": {}}
    data[section][line.key] = given if line.limit is None else {**given, "limit": line.limit}
    defaults = Defaults(document())
    values = build.default_values(defaults, Variables(environ, hostname))
    full = apply_defaults(data, defaults, values, hostname)[section][line.key]
    built = build.election(full) if line.limit is None else build.semaphore(full)
    if isinstance(built, ElectionSettings):
        built = replace(built, only_locks=True)
    settings = replace(built, run=Run(Command(tuple(line.argv)), line.stop_timeout_s))
    lease = lease_of(settings)
    if lease.room_s < ROOM_MIN_S:
        room_s, least_s = format_duration(lease.room_s), format_duration(ROOM_MIN_S)
        enough_s = sufficient_lockout_s(settings, ROOM_MIN_S)
        raise NoRoom(
            f"cannot end the command before another node may hold {line.key}: room would be "
            f"{room_sum(settings)} = {room_s}, at least {least_s} are needed; "
            f"set --lock-delay to {enough_s}s or more"
        )
    return settings
