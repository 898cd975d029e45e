"""What systemd is told: ready, a status line, signs of life, stopping.

The protocol is sd_notify(3)'s: a datagram of NAME=value lines to the socket in NOTIFY_SOCKET, from
WATCHDOG_USEC the time within which a sign of life is due. Signs of life come with turns of the loop
and from nowhere else: a loop that stands still gives none, and systemd kills it. This module must
never decide anything about items, never wait and never raise: what the socket does not take is said
again with the next turn.
"""

import os
import socket
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

from supervisor.core.actions import Action, Role, RoleChanged
from supervisor.core.contender import Contender
from supervisor.core.contenders import Contenders
from supervisor.core.events import Answered, Event, StopAsked, Tick
from supervisor.core.lane import LONG_AGO
from supervisor.core.tenure import Phase

PINGS_PER_TIMEOUT = 3  # in the time that systemd waits for one: two may be late or lost
PING_INTERVAL_S = 3.0  # where systemd watches nothing, for what on_lose still needs
EXTENSION_S = 20.0  # two beats missed, then a release and a destroy without an answer
STATUS_CHARS_MAX = 300  # a line of `systemctl status`

_LOSE_SIDE = (Phase.STOPPING, Phase.LOSING, Phase.LAST_RESORT)
_TOLD = (
    Role.STUCK,
    Role.LOSING,
    Role.ACQUIRING,
    Role.INELIGIBLE,
    Role.PAUSED,
    Role.RESTING,
)  # the worst first


class SystemdNotifier:
    """Tells systemd of one node's turns; without NOTIFY_SOCKET in ``environ`` nothing at all.

    ``warn`` is called once when systemd cannot be told, and again only after it could.
    """

    def __init__(
        self,
        contenders: Contenders,
        environ: Mapping[str, str],
        clock: Callable[[], float],
        warn: Callable[[str], None],
    ) -> None:
        self._contenders = contenders
        self._address = environ.get("NOTIFY_SOCKET", "")
        self._clock = clock
        self._warn = warn
        self._beat_every_s = ping_interval_s(environ, os.getpid())
        self._beat_at = LONG_AGO
        self._owed: dict[str, str] = {}
        self._heard: set[str] = set()
        self._ready = self._stopping = self._complained = False
        self._status = ""

    def on_step(self, event: Event, actions: Sequence[Action]) -> None:
        """What follows from a turn for systemd; to be called behind whatever logs it."""
        if not self._address:
            return
        contenders = tuple(self._contenders.by_name.values())
        if isinstance(event, StopAsked):
            self._stopping = True
            self._beat_at = LONG_AGO  # it has as long as the unit says, which may be less than a beat
            self._owed |= {"STOPPING": "1"}
        elif isinstance(event, Answered):
            self._heard.add(event.request.item)
        was_ready = self._ready
        if not self._ready and not self._stopping and not unanswered(contenders, self._heard):
            self._ready = True
            self._owed |= {"READY": "1"}
        if not was_ready or isinstance(event, Tick) or any(isinstance(each, RoleChanged) for each in actions):
            self._tell_status(contenders)
        self._ping_watchdog(contenders)
        self._send()

    def reloading(self) -> None:
        """The file is about to be read anew; ``reloaded`` must follow."""
        if self._ready and not self._stopping:
            now_us = time.clock_gettime_ns(time.CLOCK_MONOTONIC) // 1000
            self._owed.pop("READY", None)
            self._owed |= {"RELOADING": "1", "MONOTONIC_USEC": str(now_us)}
            self._send()

    def reloaded(self) -> None:
        """The file is in force, or was refused."""
        if self._ready and not self._stopping:
            for name in ("RELOADING", "MONOTONIC_USEC"):
                self._owed.pop(name, None)
            self._owed |= {"READY": "1"}
            self._send()

    def _tell_status(self, contenders: Collection[Contender]) -> None:
        awaited = () if self._ready or self._stopping else unanswered(contenders, self._heard)
        status = status_line(contenders, awaited)
        if status != self._status:
            self._status = status
            self._owed |= {"STATUS": status}

    def _ping_watchdog(self, contenders: Iterable[Contender]) -> None:
        now = self._clock()
        if now - self._beat_at < self._beat_every_s:
            return
        self._beat_at = now
        self._owed |= {"WATCHDOG": "1"}
        if (self._stopping or not self._ready) and any(is_losing(contender) for contender in contenders):
            self._owed |= {"EXTEND_TIMEOUT_USEC": str(round(EXTENSION_S * 1e6))}

    def _send(self) -> None:
        if not self._owed or not self._address:
            return
        text = "".join(f"{name}={value}\n" for name, value in self._owed.items())
        try:
            with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as datagrams:
                datagrams.setblocking(False)
                datagrams.sendto(text.encode(), _path(self._address))
        except (OSError, ValueError) as error:
            if not self._complained:
                self._complained = True
                self._warn(f"cannot tell systemd at {self._address}: {error}")
            return
        self._complained = False
        self._owed.clear()


def _path(address: str) -> str:
    """A leading @ stands for the zero byte of an abstract socket."""
    return "\0" + address[1:] if address.startswith("@") else address


def ping_interval_s(environ: Mapping[str, str], pid: int) -> float:
    """The time from one sign of life to the next, as WATCHDOG_USEC asks for it if it means us."""
    asked, whom = environ.get("WATCHDOG_USEC", ""), environ.get("WATCHDOG_PID", str(pid))
    if not (asked.isascii() and asked.isdigit()) or int(asked) == 0 or whom != str(pid):
        return PING_INTERVAL_S
    return int(asked) / 1e6 / PINGS_PER_TIMEOUT


def unanswered(contenders: Iterable[Contender], heard: Collection[str]) -> tuple[str, ...]:
    """Those that have not had Consul's first answer, or first failure, yet."""
    begun = (each for each in contenders if each.role is not Role.STOPPED)
    return tuple(each.settings.name for each in begun if each.settings.name not in heard)


def is_losing(contender: Contender) -> bool:
    """Whether what ends a tenure is under way: it takes the time that its hooks are given."""
    return contender.tenure is not None and contender.tenure.phase in _LOSE_SIDE


def status_line(contenders: Collection[Contender], awaited: Sequence[str] = ()) -> str:
    """One line for `systemctl status`; ``awaited``: what Consul has not answered for yet."""
    contending = [each for each in contenders if each.settings.contend and each.role is not Role.STOPPED]
    held = [each.settings.name for each in contending if each.role is Role.HOLDING]
    parts = [_names(f"holds {len(held)} of {len(contending)}", held)]
    if observed := sum(not each.settings.contend for each in contenders):
        parts.append(f"observes {observed}")
    if awaited:
        parts.append(_names("asks Consul for the first time", awaited))
    for role in _TOLD:
        if names := [each.settings.name for each in contending if each.role is role]:
            parts.append(_names(role, names))
    line = "; ".join(parts)
    return line if len(line) <= STATUS_CHARS_MAX else line[: STATUS_CHARS_MAX - 1] + "…"


def _names(what: str, names: Sequence[str]) -> str:
    return f"{what}: {', '.join(names)}" if names else what
