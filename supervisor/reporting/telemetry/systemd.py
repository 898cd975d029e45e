"""The notifications to systemd: readiness, a status line, watchdog pings, stopping.

The protocol is that of sd_notify(3): a datagram of NAME=value lines to the socket in NOTIFY_SOCKET.
WATCHDOG_USEC is the time within which systemd expects a ping. Pings come after steps of the loop and from
nowhere else, so a loop that hangs sends none, and systemd kills the process. This module must never decide
anything about items, never wait and never raise. A datagram that the socket does not take is sent again after
the next step.
"""

import os
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

from supervisor.adapters.runtime.notification import send
from supervisor.config.notification import may_stand_still_s, seconds_of
from supervisor.core.actions import Action, Role, RoleChanged
from supervisor.core.contender.state import Contender
from supervisor.core.contenders import Contenders
from supervisor.core.events import Answered, Event, StopAsked, Tick
from supervisor.core.machines.tenure import Phase
from supervisor.core.times import LONG_AGO
from supervisor.reporting.telemetry.log import Log

PINGS_PER_TIMEOUT = 3  # in the time that systemd waits for one, because two may be late or lost
PING_INTERVAL_S = 3.0  # without a watchdog, because the time for on_lose is still extended
EXTENSION_S = 20.0  # for two missed pings, then a release and a destroy without an answer
STATUS_CHARS_MAX = 300  # a line of `systemctl status`

_LOSE_SIDE = (Phase.STOPPING, Phase.LOSING, Phase.LAST_RESORT)
# The worst first.
_NAMED_ROLES = (Role.STUCK, Role.LOSING, Role.ACQUIRING, Role.INELIGIBLE, Role.PAUSED, Role.RESTING)


class SystemdNotifier:
    """The notifications of one daemon to systemd. Without NOTIFY_SOCKET in ``environ`` nothing is sent."""

    def __init__(
        self, contenders: Contenders, environ: Mapping[str, str], clock: Callable[[], float], log: Log
    ) -> None:
        self._contenders, self._clock, self._log = contenders, clock, log
        self._address = environ.get("NOTIFY_SOCKET", "")
        self._ping_every_s = ping_interval_s(environ, os.getpid())
        self._start_s = may_stand_still_s(environ)
        self._pinged_at = LONG_AGO
        self._unsent: dict[str, str] = {}
        self._answered: set[str] = set()
        self._ready = self._stopping = False
        self._complained = False  # that systemd cannot be notified, since a datagram was last sent
        self._status = ""

    def on_step(self, event: Event, actions: Sequence[Action]) -> None:
        """Send what follows from a step for systemd. To be called after the step is logged."""
        if not self._address:
            return
        contenders = tuple(self._contenders.by_name.values())
        if isinstance(event, StopAsked):
            self._stopping = True
            self._pinged_at = LONG_AGO  # the unit's time to stop may be shorter than the ping interval
            self._unsent |= {"STOPPING": "1"}
        elif isinstance(event, Answered):
            self._answered.add(event.request.item)
        was_ready = self._ready
        if not self._ready and not self._stopping and not unanswered(contenders, self._answered):
            self._ready = True
            self._unsent |= {"READY": "1"}
        if not was_ready or isinstance(event, Tick) or any(isinstance(each, RoleChanged) for each in actions):
            awaited = () if self._ready or self._stopping else unanswered(contenders, self._answered)
            if (status := status_line(contenders, awaited)) != self._status:
                self._status = status
                self._unsent |= {"STATUS": status}
        self._ping_watchdog(contenders)
        self._send()

    def reloading(self) -> None:
        """Notify systemd that a reload begins. ``reloaded`` must follow."""
        now_us = time.clock_gettime_ns(time.CLOCK_MONOTONIC) // 1000
        self._tell_reload({"RELOADING": "1", "MONOTONIC_USEC": str(now_us)})

    def reloaded(self) -> None:
        """Notify systemd that the reload has ended, whether or not it was refused."""
        self._tell_reload({"READY": "1"})

    def _tell_reload(self, told: Mapping[str, str]) -> None:
        if self._ready and not self._stopping:
            for name in ("READY", "RELOADING", "MONOTONIC_USEC"):
                self._unsent.pop(name, None)
            self._unsent |= told
            self._send()

    def _ping_watchdog(self, contenders: Iterable[Contender]) -> None:
        now = self._clock()
        if now - self._pinged_at < self._ping_every_s:
            return
        self._pinged_at = now
        self._unsent |= {"WATCHDOG": "1"}
        if self._stopping and any(is_losing(contender) for contender in contenders):
            self._unsent |= {"EXTEND_TIMEOUT_USEC": str(round(EXTENSION_S * 1e6))}
        elif not self._stopping and not self._ready:
            self._unsent |= {"EXTEND_TIMEOUT_USEC": str(round(self._start_s * 1e6))}

    def _send(self) -> None:
        if not self._unsent or not self._address:
            return
        text = "".join(f"{name}={value}\n" for name, value in self._unsent.items())
        try:
            send(self._address, text)
        except (OSError, ValueError) as error:
            if not self._complained:
                self._complained = True
                why = f"cannot notify systemd at {self._address}: {error}"
                self._log.line("warning", "systemd", why=why)
            return
        self._complained = False
        self._unsent.clear()


def ping_interval_s(environ: Mapping[str, str], pid: int) -> float:
    """Return the seconds between two pings: a third of WATCHDOG_USEC, if systemd means this process."""
    timeout_s, meant = seconds_of("WATCHDOG_USEC", environ), environ.get("WATCHDOG_PID", str(pid))
    return timeout_s / PINGS_PER_TIMEOUT if timeout_s and meant == str(pid) else PING_INTERVAL_S


def unanswered(contenders: Iterable[Contender], answered: Collection[str]) -> tuple[str, ...]:
    """Return the items for which Consul has given no first answer, not even a failure."""
    begun = (each for each in contenders if each.role is not Role.STOPPED)
    return tuple(each.settings.name for each in begun if each.settings.name not in answered)


def is_losing(contender: Contender) -> bool:
    """Return whether the end of a tenure is under way, which takes the time that its hooks are given."""
    return contender.tenure is not None and contender.tenure.phase in _LOSE_SIDE


def status_line(contenders: Collection[Contender], awaited: Sequence[str] = ()) -> str:
    """Return one line for `systemctl status`. ``awaited`` are the items for which Consul has not answered."""
    contending = [each for each in contenders if each.settings.contend and each.role is not Role.STOPPED]
    held = [each.settings.name for each in contending if each.role is Role.HOLDING]
    parts = [_names(f"holds {len(held)} of {len(contending)}", held)]
    if observed := sum(not each.settings.contend for each in contenders):
        parts.append(f"observes {observed}")
    if awaited:
        parts.append(_names("waits for Consul's first answer", awaited))
    for role in _NAMED_ROLES:
        if names := [each.settings.name for each in contending if each.role is role]:
            parts.append(_names(role, names))
    line = "; ".join(parts)
    return line if len(line) <= STATUS_CHARS_MAX else line[: STATUS_CHARS_MAX - 1] + "…"


def _names(what: str, names: Sequence[str]) -> str:
    return f"{what}: {', '.join(names)}" if names else what
