"""A network of one test: machines that have a cable to one switch, each with interfaces of its own.

A machine is a network namespace without a name, which a sleeping process keeps alive. So two tests cannot
meet, the host's own network is never touched, and nothing is left even after a kill -9 of the test. It needs
root, iproute2 and nftables. Packets are dropped in the switch, so a machine sees silence, as with a broken
cable.
"""

import os
import re
import signal
import subprocess
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from typing import Self

import psutil

from tests.support.captured import captured
from tests.support.supervisor import until

MASK = 24
# Either hook of the switch sees a packet once, on its way from one cable to another.
RULES = """
add table bridge faults
add chain bridge faults forward { type filter hook forward priority 0; }
flush chain bridge faults forward
"""
LOOPBACK_RULES = """
add table inet faults
add chain inet faults input { type filter hook input priority 0; }
flush chain inet faults input
"""


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
        return self._keeper.pid

    @property
    def _net(self) -> str:
        return os.readlink(f"/proc/{self.pid}/ns/net")

    def inside(self, *argv: str) -> list[str]:
        """Return the command line that runs this one on the machine, without another process in between."""
        return ["nsenter", f"--net=/proc/{self.pid}/ns/net", *argv]

    def run(self, *argv: str, text: str = "") -> str:
        """Run a command on the machine with this input, and return its output."""
        done = captured(self.inside(*argv), input=text)
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
        """Kill all processes of the machine until none is left.

        All are stopped before the first one is killed, so that none reacts to the end of another.
        """

        def left() -> list[psutil.Process]:
            found = self.processes()
            for number in (signal.SIGSTOP, signal.SIGKILL):
                for process in found:
                    with suppress(psutil.NoSuchProcess):
                        process.send_signal(number)
            return found

        until(lambda: not left(), f"nothing runs on {self.name}")

    def close(self) -> None:
        """Remove the namespace, and with it all cables that end in it."""
        self.power_off()
        self._keeper.kill()
        self._keeper.wait()

    def mac(self) -> str:
        return _mac(self.run("ip", "link", "show", "dev", "eth0"), "link/ether")

    def known_mac(self, address: str) -> str:
        """Return the MAC address that the machine has for this address; blank when it knows none."""
        return _mac(self.run("ip", "neighbour", "show", "to", address), "lladdr")

    def has(self, address: str) -> bool:
        return bool(self.run("ip", "-oneline", "address", "show", "to", address))


class Network:
    """A switch, and the machines that are plugged into it, by their names."""

    def __init__(self) -> None:
        self.machines: dict[str, Machine] = {}
        self._exits = ExitStack()

    def __enter__(self) -> Self:
        self._switch = self._machine("switch")
        self._switch.run("ip", "link", "add", "bridge", "type", "bridge")
        self._switch.run("ip", "link", "set", "bridge", "up")
        return self

    def __exit__(self, *error: object) -> None:
        self._exits.close()

    def plug(self, name: str, address: str) -> Machine:
        machine, cable = self._machine(name), f"to-{name}"
        self.machines[name] = machine
        peer = ["type", "veth", "peer", "name", "eth0", "netns", str(machine.pid)]
        self._switch.run("ip", "link", "add", cable, *peer)
        self._switch.run("ip", "link", "set", cable, "master", "bridge", "up")
        machine.run("ip", "address", "add", f"{address}/{MASK}", "dev", "eth0")
        for device in ("lo", "eth0"):
            machine.run("ip", "link", "set", device, "up")
        return machine

    def unplug(self, machine: Machine) -> None:
        self._switch.run("ip", "link", "set", f"to-{machine.name}", "down")

    def part(self, *machines: Machine, parted: bool = True) -> None:
        """Drop each packet from one of these machines to another of them; no other traffic is affected."""
        for machine in machines:
            how = ["type", "bridge_slave", "isolated", "on" if parted else "off"]
            self._switch.run("ip", "link", "set", f"to-{machine.name}", *how)

    def cut(self, name: str, *, sent: bool = True, received: bool = True) -> None:
        """Drop every packet that the machine sends to others, or receives from them, or both."""
        ends = [end for end, is_cut in (("iifname", sent), ("oifname", received)) if is_cut]
        rules = [f'add rule bridge faults forward {end} "to-{name}" drop' for end in ends]
        self._rule(self._switch, RULES, rules)

    def cut_loopback(self, name: str, port: int) -> None:
        """Drop the packets to and from this port inside the machine."""
        ends = ("dport", "sport")
        rules = [f'add rule inet faults input iifname "lo" tcp {end} {port} drop' for end in ends]
        self._rule(self.machines[name], LOOPBACK_RULES, rules)

    def heal(self, name: str) -> None:
        self._rule(self._switch, RULES)
        self._rule(self.machines[name], LOOPBACK_RULES)

    @staticmethod
    def _rule(machine: Machine, begin: str, rules: Sequence[str] = ()) -> None:
        machine.run("nft", "-f", "-", text="\n".join([begin, *rules, ""]))

    def _machine(self, name: str) -> Machine:
        made = Machine(name)
        self._exits.callback(made.close)
        return made


def _mac(text: str, word: str) -> str:
    found = re.search(rf"{word} ([0-9a-f:]+)", text)
    return found[1] if found else ""
