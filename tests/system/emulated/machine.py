"""One virtual machine: its console, each line with the time of this host; its monitor; its end."""

import json
import re
import socket
import subprocess
import threading
import uuid
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from supervisor.adapters.runtime.clock import boottime
from tests.support.supervisor import until
from tests.system.emulated.image import KERNEL

MEMORY = "512M"
# No TSC of this host is stable enough for a machine without KVM to wait until it is found so.
KERNEL_ARGUMENTS = "console=ttyS0 quiet panic=0 tsc=unstable mitigations=off"

SEEN_S = 300.0  # on a busy host an emulated machine takes minutes to boot
OFF_S = 30.0  # qemu takes some milliseconds


@dataclass(frozen=True, slots=True)
class Line:
    """A line of a console, and when this host read it, in seconds of CLOCK_BOOTTIME."""

    at: float
    text: str


class Machine:
    """A machine that boots, until ``close``.

    qemu ends when the machine is reset, by whatever. The machine reaches this host at 10.0.2.2, and has no
    other network.
    """

    def __init__(self, name: str, image: Path, folder: Path) -> None:
        self.name = name
        self.console: list[Line] = []
        self.monitor: list[Line] = []
        self._log_path = folder / f"{name}.log"
        self._socket = folder / f"{name}.monitor"
        argv = ["setpriv", "--pdeathsig", "KILL", "qemu-system-x86_64", "-nodefaults", "-no-user-config"]
        argv += ["-display", "none", "-accel", "tcg", "-cpu", "max", "-m", MEMORY, "-serial", "stdio"]
        argv += ["-uuid", str(uuid.uuid4())]
        argv += ["-kernel", str(KERNEL / "vmlinuz"), "-initrd", str(image)]
        argv += ["-append", f"{KERNEL_ARGUMENTS} node={name}"]
        argv += ["-netdev", "user,id=net", "-device", "e1000,netdev=net,romfile="]
        argv += ["-device", "i6300esb", "-action", "watchdog=reset", "-no-reboot"]
        argv += ["-qmp", f"unix:{self._socket},server=on,wait=off"]
        self._qemu = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        threading.Thread(target=self._read_console, daemon=True).start()
        until(self._connected, f"qemu of {name} listens")
        threading.Thread(target=self._read_monitor, daemon=True).start()
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
        """When the machine was reset. None: it runs."""
        return next((line.at for line in self.monitor if '"guest-reset"' in line.text), None)

    def type(self, line: str) -> None:
        assert self._qemu.stdin is not None, "opened as a pipe"
        self._qemu.stdin.write(f"{line}\n".encode())
        self._qemu.stdin.flush()

    def see(self, pattern: str, begin: int = 0) -> None:
        """Return when the console shows the pattern, in its line of this number or a later one."""

        def seen() -> bool:
            assert not self.reset_at, f"{self.name} was reset, and has never shown: {pattern}"
            assert not self.is_off, f"{self.name} is off, and has never shown: {pattern}"
            return any(re.search(pattern, line.text) for line in self.console[begin:])

        until(seen, f"{self.name} shows {pattern}", SEEN_S)

    def order(self, verb: str, **arguments: object) -> None:
        """Give the monitor an order: ``stop`` pauses the machine with its clocks, and ``cont`` ends that."""
        self._monitor.sendall(json.dumps({"execute": verb, "arguments": arguments}).encode())

    def power_off(self) -> None:
        """Have the monitor end the machine, and return once it is off; one that is off is no error."""
        with suppress(OSError):
            self.order("quit")
        self._qemu.wait(OFF_S)

    def _connected(self) -> bool:
        self._monitor = socket.socket(socket.AF_UNIX)
        try:
            self._monitor.connect(str(self._socket))
        except OSError:
            self._monitor.close()
            return False
        return True

    def _read_console(self) -> None:
        assert self._qemu.stdout is not None, "opened as a pipe"
        with self._log_path.open("w", buffering=1) as log:
            for line in self._qemu.stdout:
                self.console.append(Line(boottime(), line.decode(errors="replace").rstrip()))
                log.write(f"{self.console[-1].at:.3f} {self.console[-1].text}\n")

    def _read_monitor(self) -> None:
        for line in self._monitor.makefile():
            self.monitor.append(Line(boottime(), line))
