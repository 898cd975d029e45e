"""A stand-in for the kernel of a watchdog device, which does what watchdog_dev.c of Linux does."""

import errno
import os
import struct

from supervisor.adapters.runtime.watchdogs import (
    CAN_SET_TIMEOUT,
    CAN_STOP,
    GETSUPPORT,
    GETTIMEOUT,
    HAS_PRETIMEOUT,
    INFO,
    SETPRETIMEOUT,
    SETTIMEOUT,
    Kernel,
)


class FakeKernel(Kernel):
    """A machine with at most one device, which the test moves through time.

    fires_at: when the device resets the machine. None: it does not run.
    calls: what was done to the device, with the time.
    fails: the calls that fail, with the number of the error.
    """

    def __init__(self, options: int = CAN_STOP | CAN_SET_TIMEOUT, has_s: int = 60) -> None:
        self.now = 0.0
        self.options = options
        self.has_s = has_s
        self.rounds_to_s = 1
        self.pretimeout_s = 0
        self.nowayout = False
        self.is_open = False
        self.stops = False
        self.fires_at: float | None = None
        self.calls: list[tuple[float, str]] = []
        self.fails: dict[str, int] = {}

    def _call(self, name: str) -> None:
        if name in self.fails:
            raise OSError(self.fails[name], os.strerror(self.fails[name]))
        self.calls.append((self.now, name))

    def did(self) -> list[str]:
        """Return the names of the calls since the last call of this method."""
        names = [name for _, name in self.calls]
        self.calls.clear()
        return names

    def cannot_stop(self, path: str) -> bool:
        if "stat" in self.fails:
            raise OSError(self.fails["stat"], os.strerror(self.fails["stat"]))
        return self.nowayout

    def open(self, path: str, flags: int) -> int:  # type: ignore[override]
        if self.is_open:
            raise OSError(errno.EBUSY, os.strerror(errno.EBUSY))
        self._call("open")
        self.is_open, self.stops = True, False
        self._ping()
        return 9

    def write(self, fd: int, content: bytes) -> int:  # type: ignore[override]
        self._call("stop" if content == b"V" else "feed")
        self.stops = content == b"V"
        self._ping()
        return len(content)

    def close(self, fd: int) -> None:
        self._call("close")
        self.dies()

    def dies(self) -> None:
        """Close the device as when its process ends."""
        self.is_open = False
        if self.stops or not self.options & CAN_STOP:
            self.fires_at = None

    def _ping(self) -> None:
        self.fires_at = self.now + self.has_s

    def ioctl(self, fd: int, call: int, content: bytes) -> bytes:
        match call:
            case _ if call == GETSUPPORT:
                return INFO.pack(self.options, 0, b"Fake Watchdog")
            case _ if call == SETTIMEOUT:
                self._call("set")
                (wished_s,) = struct.unpack("i", content)
                self.has_s = -(-wished_s // self.rounds_to_s) * self.rounds_to_s
                self._ping()
            case _ if call == SETPRETIMEOUT:
                assert self.options & HAS_PRETIMEOUT
                (self.pretimeout_s,) = struct.unpack("i", content)
            case _:
                assert call == GETTIMEOUT
        return struct.pack("i", self.has_s)

    @property
    def has_reset(self) -> bool:
        return self.fires_at is not None and self.now >= self.fires_at
