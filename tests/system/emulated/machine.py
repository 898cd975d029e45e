"""One virtual machine: its console, each line with the time of this host; its monitor; its end."""

import json
import re
import socket
import subprocess
import threading
import uuid
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from itertools import count
from pathlib import Path

from supervisor.adapters.runtime.clock import boottime
from tests.support.consul import free_ports
from tests.support.supervisor import until
from tests.system.emulated.image import KERNEL
from tests.system.emulated.lan import Lan

MEMORY = "768M"
# No TSC of this host is stable enough for a machine without KVM to wait until it is found so. On a busy host
# the timer ticks too late for the kernel's check of it, which would panic ("IO-APIC + timer doesn't work").
KERNEL_ARGUMENTS = "console=ttyS0 quiet panic=0 tsc=unstable no_timer_check mitigations=off"

NETWORK = "10.77"  # of the machines
SEEN_S = 300.0  # on a busy host an emulated machine takes minutes to boot
OFF_S = 30.0  # qemu takes some milliseconds


@dataclass(frozen=True, slots=True)
class Line:
    """A line of a console, and when this host read it, in seconds of CLOCK_BOOTTIME."""

    at: float
    text: str


class Machine:
    """A machine that boots, until ``close``.

    qemu ends when the machine is reset by anything but ``reboot``. The machine reaches this host at 10.0.2.2,
    and the other machines by their addresses. stamps: what its application and its hooks have said on a port
    of their own.
    """

    def __init__(self, number: int, image: Path, folder: Path, lan: Lan) -> None:
        self.name = name = f"node-{number}"
        self.address = f"{NETWORK}.0.{number}"
        self._orders = count(1)
        self._was_rebooted = False
        self.console: list[Line] = []
        self.stamps: list[Line] = []
        self.monitor: list[Line] = []
        self._log_path = folder / f"{name}.log"
        argv = ["setpriv", "--pdeathsig", "KILL", "qemu-system-x86_64", "-nodefaults", "-no-user-config"]
        argv += ["-display", "none", "-accel", "tcg", "-cpu", "max", "-m", MEMORY, "-serial", "stdio"]
        argv += ["-uuid", str(uuid.uuid4())]
        argv += ["-kernel", str(KERNEL / "vmlinuz"), "-initrd", str(image)]
        argv += ["-append", f"{KERNEL_ARGUMENTS} node={name} lan={self.address}"]
        argv += ["-netdev", "user,id=net", "-device", "e1000,netdev=net,romfile="]
        argv += lan.arguments(number, *free_ports(1))
        argv += ["-serial", f"unix:{folder / name}.stamps,server=on,wait=off"]
        argv += ["-device", "i6300esb", "-action", "watchdog=reset", "-no-reboot"]
        argv += ["-qmp", f"unix:{folder / name}.monitor,server=on,wait=off"]
        self._qemu = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        threading.Thread(target=self._read_console, daemon=True).start()
        self._monitor, stamps = (_connected(folder / f"{name}.{port}") for port in ("monitor", "stamps"))
        for connection, lines in ((self._monitor, self.monitor), (stamps, self.stamps)):
            threading.Thread(target=_read, args=(connection, lines), daemon=True).start()
        self.order("qmp_capabilities")

    def close(self) -> None:
        """End the machine without a word."""
        self._qemu.kill()
        self._qemu.wait()

    @property
    def is_off(self) -> bool:
        return self._qemu.poll() is not None

    @property
    def reset_at(self) -> float | None:
        """When the machine was reset. None: it runs, or ``reboot`` has reset it."""
        if self._was_rebooted:  # then its firmware resets it as well
            return None
        return next((line.at for line in self.monitor if '"guest-reset"' in line.text), None)

    def type(self, line: str) -> None:
        assert self._qemu.stdin is not None, "opened as a pipe"
        self._qemu.stdin.write(f"{line}\n".encode())
        self._qemu.stdin.flush()

    def see(self, pattern: str, begin: int = 0) -> None:
        """Return when the console shows the pattern, in its line of this number or a later one."""

        self.wait(lambda: any(re.search(pattern, line.text) for line in self.console[begin:]), pattern)

    def wait(self, shown: Callable[[], bool], what: str) -> None:
        """Return when a machine that runs has shown that."""

        def seen() -> bool:
            assert not self.reset_at, f"{self.name} was reset, and has never shown: {what}"
            assert not self.is_off, f"{self.name} is off, and has never shown: {what}"
            return shown()

        until(seen, f"{self.name} shows {what}", SEEN_S)

    def order(self, verb: str, **arguments: object) -> None:
        """Have the monitor carry out an order: ``stop`` pauses the machine, and ``cont`` ends that."""
        mark = f'"id": {next(self._orders)}'
        order = json.dumps({"execute": verb, "arguments": arguments})
        self._monitor.sendall(f"{order[:-1]}, {mark}}}".encode())

        def answered() -> bool:
            return any(f"{mark}}}" in line.text or f"{mark}," in line.text for line in self.monitor)

        until(lambda: answered() or self.is_off, f"{self.name} carries out {verb}", OFF_S)

    def power_off(self) -> None:
        """Have the monitor end the machine, and return once it is off; one that is off is no error."""
        with suppress(OSError):
            self.order("quit")
        self._qemu.wait(OFF_S)

    def reboot(self) -> None:
        """Have the monitor reset the machine, which boots again."""
        self._was_rebooted = True
        self.order("set-action", reboot="reset")
        self.order("system_reset")

    def _read_console(self) -> None:
        assert self._qemu.stdout is not None, "opened as a pipe"
        with self._log_path.open("w", buffering=1) as log:
            for line in self._qemu.stdout:
                self.console.append(Line(boottime(), line.decode(errors="replace").rstrip()))
                log.write(f"{self.console[-1].at:.3f} {self.console[-1].text}\n")


def _connected(path: Path) -> socket.socket:
    """Return a connection to this socket of qemu, once that listens."""
    connection = socket.socket(socket.AF_UNIX)
    until(lambda: connection.connect_ex(str(path)) == 0, f"qemu listens at {path}")
    return connection


def _read(connection: socket.socket, lines: list[Line]) -> None:
    """Note each line with its time, until qemu ends."""
    for line in connection.makefile(errors="replace"):
        lines.append(Line(boottime(), line.rstrip()))
