"""A network of one test: machines that have a cable to one switch, each with interfaces of its own.

A machine is a network namespace without a name, which a sleeping process keeps alive. So two tests cannot
meet, the host's own network is never touched, and nothing is left even after a kill -9 of the test. It needs
root and iproute2.
"""

import os
import re
import subprocess
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Self

import psutil

from tests.support.captured import captured
from tests.support.supervisor import Supervisor, kill_all, until

MASK = 24


class Machine:
    """A network namespace; ``eth0`` is its end of the cable."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._keeper = subprocess.Popen(
            ["setpriv", "--pdeathsig", "KILL", "unshare", "--net", "sleep", "infinity"],
            stdin=subprocess.DEVNULL,
            start_new_session=True,
        )
        until(lambda: self._net != os.readlink("/proc/self/ns/net"), f"a namespace for {name}")

    @property
    def pid(self) -> int:
        """The id of the process that keeps the namespace alive."""
        return self._keeper.pid

    @property
    def _net(self) -> str:
        return os.readlink(f"/proc/{self.pid}/ns/net")

    def inside(self, *argv: str) -> list[str]:
        """Return the command line that runs this one on the machine, without another process in between."""
        return ["nsenter", f"--net=/proc/{self.pid}/ns/net", *argv]

    def run(self, *argv: str) -> str:
        """Run a command on the machine and return its output."""
        done = captured(self.inside(*argv))
        assert done.returncode == 0, f"{argv} on {self.name}: {done.stderr}"
        return done.stdout

    def processes(self) -> list[psutil.Process]:
        """Return all processes of the machine, except the one that keeps the namespace alive."""
        net, found = self._net, []
        for process in psutil.process_iter():
            try:
                here = os.readlink(f"/proc/{process.pid}/ns/net") == net
            except OSError:
                continue  # the process has ended
            if here and process.pid != self.pid:
                found.append(process)
        return found

    def power_off(self) -> None:
        """Kill all processes of the machine until none is left."""

        def left() -> list[psutil.Process]:
            found = self.processes()
            kill_all(found)
            return found

        until(lambda: not left(), f"nothing runs on {self.name}")

    def close(self) -> None:
        """Remove the namespace, and with it all cables that end in it."""
        self.power_off()
        self._keeper.kill()
        self._keeper.wait()

    def mac(self) -> str:
        """Return the MAC address of the machine's interface on the cable."""
        return _mac(self.run("ip", "link", "show", "dev", "eth0"), "link/ether")

    def known_mac(self, address: str) -> str:
        """Return the MAC address that the machine has for this address; blank when it knows none."""
        return _mac(self.run("ip", "neighbour", "show", "to", address), "lladdr")

    def has(self, address: str) -> bool:
        """Return whether the address is on one of the machine's interfaces."""
        return bool(self.run("ip", "-oneline", "address", "show", "to", address))


class Network:
    """A switch, and the machines that are plugged into it."""

    def __init__(self) -> None:
        self._exits = ExitStack()

    def __enter__(self) -> Self:
        self._switch = self._machine("switch")
        self._switch.run("ip", "link", "add", "bridge", "type", "bridge")
        self._switch.run("ip", "link", "set", "bridge", "up")
        return self

    def __exit__(self, *error: object) -> None:
        self._exits.close()

    def plug(self, name: str, address: str) -> Machine:
        """Make a machine with this address and plug it in."""
        machine, cable = self._machine(name), f"to-{name}"
        peer = ["type", "veth", "peer", "name", "eth0", "netns", str(machine.pid)]
        self._switch.run("ip", "link", "add", cable, *peer)
        self._switch.run("ip", "link", "set", cable, "master", "bridge", "up")
        machine.run("ip", "address", "add", f"{address}/{MASK}", "dev", "eth0")
        for device in ("lo", "eth0"):
            machine.run("ip", "link", "set", device, "up")
        return machine

    def unplug(self, machine: Machine) -> None:
        """Pull the cable of this machine."""
        self._switch.run("ip", "link", "set", f"to-{machine.name}", "down")

    def part(self, *machines: Machine, parted: bool = True) -> None:
        """Drop each packet from one of these machines to another of them; no other traffic is affected."""
        for machine in machines:
            how = ["type", "bridge_slave", "isolated", "on" if parted else "off"]
            self._switch.run("ip", "link", "set", f"to-{machine.name}", *how)

    def _machine(self, name: str) -> Machine:
        made = Machine(name)
        self._exits.callback(made.close)
        return made


class Housed(Supervisor):
    """A supervisor on a machine."""

    def __init__(self, machine: Machine, folder: Path, config: Mapping[str, object]) -> None:
        super().__init__(folder, config)
        self._machine = machine

    def _argv(self) -> list[str]:
        return self._machine.inside(*super()._argv())


def _mac(text: str, word: str) -> str:
    found = re.search(rf"{word} ([0-9a-f:]+)", text)
    return found[1] if found else ""
