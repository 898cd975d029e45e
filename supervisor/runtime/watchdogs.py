"""The watchdog devices of this process, to which after each step is done what ``core.watchdog`` finds due.

A device of the kernel starts when it is opened, and stops only when the letter V is written before it is
closed: it runs on when this process dies. docs.kernel.org/watchdog/watchdog-api.html describes its calls.
"""

import errno
import os
import stat
import struct
from collections.abc import Callable, Iterator
from contextlib import suppress
from fcntl import ioctl
from pathlib import Path

from supervisor.core.actions import Arm
from supervisor.core.contenders import Contenders
from supervisor.core.events import WatchdogTried
from supervisor.core.frozen import replace
from supervisor.core.machines.lane import NEVER
from supervisor.core.watchdog import LOOK_AGAIN_S, RETRY_S, Act, Device, due

TIMEOUT_MIN_S = 4.0  # a process that is restarted feeds again after some 3 s
GETSUPPORT, SETTIMEOUT, GETTIMEOUT, SETPRETIMEOUT = 0x80285700, 0xC0045706, 0x80045707, 0xC0045708
CAN_SET_TIMEOUT, CAN_STOP, HAS_PRETIMEOUT = 0x80, 0x100, 0x200
INFO = struct.Struct("=II32s")  # watchdog_info: options, version of the firmware, name
LEGACY = (10, 130)  # /dev/watchdog, another name of /dev/watchdog0; only that one shows its settings
NOWAYOUT = "its driver has nowayout=1, so each stop in order would reset the machine"
TOO_LONG = "its timeout is longer than the lock leaves time for"
BUSY = "another program has it, such as systemd with RuntimeWatchdogSec"


class Kernel:
    """The calls of the kernel that a device takes."""

    open, write, close = staticmethod(os.open), staticmethod(os.write), staticmethod(os.close)

    def ioctl(self, fd: int, call: int, content: bytes) -> bytes:
        return ioctl(fd, call, content)

    def cannot_stop(self, path: str) -> bool:
        """Return whether sysfs says so. Raises OSError where there is no device."""
        found = os.stat(path)
        if not stat.S_ISCHR(found.st_mode):
            raise OSError("it is no device")
        numbers = os.major(found.st_rdev), os.minor(found.st_rdev)
        folder = "class/watchdog/watchdog0" if numbers == LEGACY else "dev/char/{}:{}".format(*numbers)
        shown = Path(f"/sys/{folder}/nowayout")
        return shown.exists() and shown.read_text().strip() == "1"


class Watchdogs:
    """The devices of all items, by their path."""

    def __init__(self, contenders: Contenders, kernel: Kernel) -> None:
        self._contenders, self._kernel = contenders, kernel
        self._fds: dict[str, int] = {}
        self.due_at = NEVER

    def arm(self, arm: Arm, now: float) -> WatchdogTried:
        """Open the device for a tenure that begins, unless it is open."""
        path, contenders = arm.watchdog.device, self._contenders
        device = contenders.devices.get(path)
        if device is None or not device.is_open:
            device = Device(arm.watchdog.timeout_s)
        if due(device, arm.reset_by, now)[1] is Act.STARVE:
            return WatchdogTried(path, replace(device, starves=True, why_not=TOO_LONG), arm.item)
        if not device.is_open:
            device = contenders.devices[path] = self._opened(path, device, now, LOOK_AGAIN_S)
        contenders.guards_moved = True
        return WatchdogTried(path, device, arm.item)

    def tend(self, clock: Callable[[], float]) -> Iterator[WatchdogTried]:
        """Do what is due for each device, and yield each change that its items need to know."""
        contenders = self._contenders
        if not contenders.guards_moved and (self.due_at == NEVER or clock() < self.due_at):
            return
        contenders.guards_moved, self.due_at = False, NEVER
        for path, device in tuple(contenders.devices.items()):
            limits, now = (by for each, by in contenders.guards.values() if each == path), clock()
            until = min(limits, default=None)
            at, act = due(device, until, now)
            after = replace(device, starves=act is Act.STARVE and device.is_open)
            if at <= now and act is not Act.STARVE:
                after = self._done(act, path, after, now)
            contenders.devices[path] = after
            at, act = due(after, until, now)
            self.due_at = min(self.due_at, NEVER if act is Act.STARVE else at)
            changed = (after.state, after.why_not) != (device.state, device.why_not)
            if changed or any(each.needs(path, after) for each in contenders.by_name.values()):
                yield WatchdogTried(path, after)

    def _done(self, act: Act, path: str, device: Device, now: float) -> Device:
        if act in (Act.OPEN, Act.LOOK):
            device = self._opened(path, device, now, RETRY_S if act is Act.OPEN else LOOK_AGAIN_S)
            if act is Act.OPEN or not device.is_open:
                return device
        after = (
            replace(device, fed_at=now) if act is Act.FEED else replace(device, is_open=False, try_at=NEVER)
        )
        try:
            self._kernel.write(self._fds[path], b"\0" if act is Act.FEED else b"V")
        except OSError as error:
            why = f"{path}: {error.strerror}"
            after = replace(device, is_open=False, try_at=now + RETRY_S, why_not=why)
        if not after.is_open:
            with suppress(OSError):
                self._kernel.close(self._fds.pop(path))
        return after

    def _opened(self, path: str, device: Device, now: float, retry_s: float) -> Device:
        """Return the device once it is open and has its timeout, which also feeds it."""
        try:
            if self._kernel.cannot_stop(path):
                raise OSError(NOWAYOUT)
            self._fds[path] = self._kernel.open(path, os.O_WRONLY | os.O_CLOEXEC)
            timeout_s = self._set_timeout(self._fds[path], int(device.timeout_s))
        except OSError as error:
            why = BUSY if error.errno == errno.EBUSY else error.strerror or error
            if path in self._fds:  # it is open and has not been used, so it stops
                self._done(Act.CLOSE, path, device, now)
            return replace(device, try_at=now + retry_s, why_not=f"cannot open {path}: {why}")
        return replace(device, timeout_s=timeout_s, is_open=True, fed_at=now, why_not="")

    def _set_timeout(self, fd: int, wished_s: int) -> float:
        """Set the timeout, and return the one that the device has. Raises OSError."""
        options, _, name = INFO.unpack(self._kernel.ioctl(fd, GETSUPPORT, bytes(INFO.size)))
        what = name.rstrip(b"\0").decode(errors="replace")
        if not options & CAN_STOP:
            raise OSError(f"{what} has no magic close, so it stops when this process dies")
        if options & CAN_SET_TIMEOUT:
            self._kernel.ioctl(fd, SETTIMEOUT, struct.pack("i", wished_s))
        if options & HAS_PRETIMEOUT:  # at which the kernel may panic, before the timeout
            self._kernel.ioctl(fd, SETPRETIMEOUT, bytes(4))
        (has_s,) = struct.unpack("i", self._kernel.ioctl(fd, GETTIMEOUT, bytes(4)))
        if not TIMEOUT_MIN_S <= has_s <= wished_s:
            raise OSError(f"{what} has a timeout of {has_s}s, and not the {wished_s}s of the file")
        return float(has_s)
