"""The watchdog devices of this process, to which is done what ``core.devices`` asks for.

A device of the kernel starts when it is opened, and stops only when the letter V is written before it is
closed: it runs on when this process dies. docs.kernel.org/watchdog/watchdog-api.html describes its calls.
"""

import errno
import os
import stat
import struct
from contextlib import suppress
from fcntl import ioctl
from pathlib import Path

from supervisor.core.actions import Tend
from supervisor.core.events import WatchdogTried
from supervisor.core.frozen import replace
from supervisor.core.times import NEVER
from supervisor.core.watchdog import LOOK_AGAIN_S, RETRY_S, TOO_LONG, Act, Device

TIMEOUT_MIN_S = 4.0  # a process that is restarted feeds again after some 3 s
GETSUPPORT, SETTIMEOUT, GETTIMEOUT, SETPRETIMEOUT = 0x80285700, 0xC0045706, 0x80045707, 0xC0045708
CAN_SET_TIMEOUT, CAN_STOP, HAS_PRETIMEOUT = 0x80, 0x100, 0x200
INFO = struct.Struct("=II32s")  # watchdog_info: options, version of the firmware, name
LEGACY = (10, 130)  # /dev/watchdog, another name of /dev/watchdog0; only that one shows its settings
NOWAYOUT = "its driver has nowayout=1, so each stop in order would reset the machine"
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
    """The devices that this process has open."""

    def __init__(self, kernel: Kernel) -> None:
        self._kernel = kernel
        self._fds: dict[str, int] = {}  # by the device's path

    def tend(self, tend: Tend, now: float) -> WatchdogTried:
        """Do to a device what the core asks for, unless that is too late, and return the outcome."""
        device = tend.device
        if now > tend.by and tend.item:
            device = replace(device, starves=True, why_not=TOO_LONG)
        elif tend.act is not None and now <= tend.by:
            device = self._done(tend, now)
        return WatchdogTried(tend.path, device, tend.item)

    def _done(self, tend: Tend, now: float) -> Device:
        path, device, act = tend.path, tend.device, tend.act
        if act in (Act.OPEN, Act.LOOK):
            retry_s = RETRY_S if act is Act.OPEN and not tend.item else LOOK_AGAIN_S
            device = self._opened(path, device, now, retry_s)
            if act is Act.OPEN or not device.is_open:
                return device
        return self._written(path, device, now, feeds=act is Act.FEED)

    def _written(self, path: str, device: Device, now: float, *, feeds: bool) -> Device:
        """Feed the device, or close it in order."""
        after = replace(device, fed_at=now) if feeds else replace(device, is_open=False, try_at=NEVER)
        try:
            self._kernel.write(self._fds[path], b"\0" if feeds else b"V")
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
                self._written(path, device, now, feeds=False)
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
