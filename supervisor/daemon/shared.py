"""Names the parts of a daemon that its operator, pauses, listeners, events and fleet all use."""

import time
from collections.abc import Callable
from dataclasses import dataclass

from supervisor.adapters.consul.client import ConsulClient
from supervisor.adapters.runtime.background import Report
from supervisor.adapters.runtime.clock import boottime
from supervisor.core.contenders import Contenders
from supervisor.core.events import Event
from supervisor.reporting.telemetry.history import History
from supervisor.reporting.telemetry.log import Log
from supervisor.reporting.telemetry.status import Status


@dataclass(frozen=True, slots=True)
class Shared:
    """The parts of one daemon that its other parts share."""

    node: str  # its name, by default that of the host, which names of sessions may contain
    contenders: Contenders
    dispatch: Callable[[Event], None]
    client: ConsulClient
    status: Status
    history: History
    log: Log
    report: Report  # handles an unhandled exception
    clock: Callable[[], float] = boottime  # the core's, in seconds
    wall: Callable[[], float] = time.time  # Unix time
