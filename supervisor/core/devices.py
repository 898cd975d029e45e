"""The watchdog devices of all items: what is due for each becomes an action.

The shell carries each ``Tend`` out at once, and answers with the device as it is then.
"""

from collections.abc import Collection, Iterator

from supervisor.core.actions import Arm, Tend
from supervisor.core.contender.state import Contender
from supervisor.core.events import WatchdogTried
from supervisor.core.frozen import replace
from supervisor.core.settings import Watchdog
from supervisor.core.times import LONG_AGO, NEVER
from supervisor.core.watchdog import TOO_LONG, Act, Device, due


class Devices:
    """The watchdog devices of all items, by their path."""

    def __init__(self) -> None:
        self.by_path: dict[str, Device] = {}
        self.armed: dict[str, tuple[str, float]] = {}  # by item: its device, and ``reset_by`` of its tenure
        self.wanted: list[Arm] = []  # by the tenures that begin
        self.asked: set[str] = set()  # the devices whose ``Tend`` has no answer yet: they get no other one
        self.due_at = NEVER  # when something is due for a device at the earliest

    def note(self, contender: Contender, former: Watchdog | None, now: float) -> None:
        """Note until when the device of this contender may be fed because of it.

        former: the watchdog of its settings before this step.
        """
        name, watchdog, tenure = contender.settings.name, contender.settings.watchdog, contender.tenure
        before = self.armed.pop(name, None)
        nothing_new = before is None
        if watchdog is not None:
            device = self.by_path.get(watchdog.device)
            if device is None or (watchdog != former and not device.is_open):  # look at it anew
                device = self.by_path[watchdog.device] = Device(watchdog.timeout_s)
                self.due_at = LONG_AGO
            if tenure is not None and tenure.armed:
                reset_by = tenure.reset_by(contender.lease)
                self.armed[name] = (watchdog.device, reset_by)
                # A contact that only moves the last moment on makes nothing due that was not due before.
                nothing_new = before is not None and now + device.timeout_s <= before[1] <= reset_by
            nothing_new = nothing_new and not contender.must_hear_of(watchdog.device, device)
        if not nothing_new:
            self.due_at = LONG_AGO

    def of_item(self, name: str) -> Device | None:
        """Return the device that is open for this item's tenure. None: none is."""
        device = self.by_path[self.armed[name][0]] if name in self.armed else None
        return device if device is not None and device.is_open else None

    def want(self, arm: Arm) -> None:
        """Let this device be open before the tenure begins, by the next ``tend``."""
        self.wanted.append(arm)
        self.by_path.setdefault(arm.watchdog.device, Device(arm.watchdog.timeout_s))
        self.due_at = LONG_AGO

    def tried(self, event: WatchdogTried) -> None:
        """Note the device as it is now. One whose timeout was too long for one tenure may suit the others."""
        self.asked.discard(event.path)
        if not (event.item and event.device.starves):
            self.by_path[event.path] = event.device
        self.due_at = LONG_AGO

    def tend(self, contenders: Collection[Contender], now: float) -> Iterator[Tend]:
        """Yield what is due for each device, and what one of the contenders is yet to learn of it."""
        self.due_at = NEVER
        for path, device in self.by_path.items():
            if path in self.asked:
                continue
            tend = self._opening(path, device, now) or self._due(path, device, contenders, now)
            if tend is not None:
                self.asked.add(path)
                yield tend

    def _opening(self, path: str, device: Device, now: float) -> Tend | None:
        """Return what lets the first tenure begin that wants this device, or tells it why it must not."""
        arm = next((arm for arm in self.wanted if arm.watchdog.device == path), None)
        if arm is None:
            return None
        self.wanted.remove(arm)
        if not device.is_open:
            device = Device(arm.watchdog.timeout_s)
        if due(device, arm.reset_by, now)[1] is Act.STARVE:
            return Tend(path, None, replace(device, starves=True, why_not=TOO_LONG), arm.item)
        act = None if device.is_open else Act.OPEN
        return Tend(path, act, device, arm.item, by=arm.reset_by - device.timeout_s)

    def _due(self, path: str, device: Device, contenders: Collection[Contender], now: float) -> Tend | None:
        until = min((by for each, by in self.armed.values() if each == path), default=None)
        at, act = due(device, until, now)
        after = replace(device, starves=act is Act.STARVE and device.is_open)
        if act is not Act.STARVE and at <= now:
            return Tend(path, act, after, by=NEVER if until is None else until - device.timeout_s)
        is_news = not after.starves and any(each.must_hear_of(path, after) for each in contenders)
        if after != device or is_news:
            return Tend(path, None, after)
        if act is not Act.STARVE:
            self.due_at = min(self.due_at, at)
        return None
