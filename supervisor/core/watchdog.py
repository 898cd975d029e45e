"""The watchdog: until when the device that resets this machine may be fed, and what is due for it.

A device fires ``timeout`` after it was fed last. It is armed for a tenure from before on_acquire until the
end of the last on_lose is on record, and is fed only while ``now + timeout <= reset_by`` of every tenure that
it is armed for. The newest feed decides when the device fires, so one feed comes just before the last moment
at which the rule allows it.
"""

from enum import Enum

from supervisor.core.frozen import dataclass
from supervisor.core.times import LONG_AGO, NEVER

FEED_EVERY_S = 1.0  # the loop wakes as often
FEED_AHEAD_S = 0.1  # because a busy loop is late; half of the smallest margin, 0.25 s, is more
RETRY_S = 1.0  # after a device that is armed has failed
LOOK_AGAIN_S = 10.0  # after a look at a device that cannot be used
TOO_LONG = "its timeout is longer than the lock leaves time for"

Act = Enum("Act", "OPEN FEED CLOSE LOOK STARVE")  # LOOK opens it and disarms it again; STARVE does nothing


@dataclass(frozen=True, slots=True)
class Device:
    """A watchdog device as this process knows it."""

    timeout_s: float  # as the device has it, or until it was opened as the file has it
    is_open: bool = False
    fed_at: float = LONG_AGO
    try_at: float = LONG_AGO  # when to open or to look at it. NEVER: a look has shown that it can be used
    why_not: str = ""  # why it cannot be used. Blank: it can
    starves: bool = False  # it is open, and must not be fed

    @property
    def fires_at(self) -> float:
        return self.fed_at + self.timeout_s if self.is_open else NEVER

    @property
    def state(self) -> str:
        if self.why_not:
            return "failed"
        return "starves" if self.starves else "armed" if self.is_open else "closed"


def due(device: Device, until: float | None, now: float) -> tuple[float, Act]:
    """Return what is to be done next with the device, and when.

    until: the earliest ``Tenure.reset_by`` of those that it is armed for. None: there are none.
    """
    if until is None:
        return (now, Act.CLOSE) if device.is_open else (device.try_at, Act.LOOK)
    if now > until - device.timeout_s:
        return now, Act.STARVE
    if not device.is_open:
        return device.try_at, Act.OPEN
    last_at, next_at = until - device.timeout_s - FEED_AHEAD_S, device.fed_at + FEED_EVERY_S
    return next_at if device.fed_at >= last_at else min(last_at, next_at), Act.FEED
