"""A network of one run: a switch and some nodes, each in a network namespace, with one cable a node.

Packets are dropped in the switch, so a node sees silence, as with a broken cable. The host's own network is
never touched. The names of the namespaces live in a mount namespace of this run (``enter``). So two runs
cannot meet, and nothing is left of a run even after a kill -9.
"""

import os
import shutil
import signal
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Self

from tests.support.captured import captured

SWITCH = "switch"
INSIDE = "CLUSTER_NETWORK_IS_OWN"  # set in the process that `enter` starts
PROGRAMS = {"ip": "iproute2", "nft": "nftables", "unshare": "util-linux", "setpriv": "util-linux"}
OWN_NAMES = 'mkdir -p /run/netns && mount -t tmpfs netns /run/netns && exec "$@"'
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


class CannotRun(Exception):
    """This machine or this user cannot have such a network; the text names the reason and the remedy."""


def require(programs: Mapping[str, str]) -> None:
    """Raise CannotRun without root, or without one of these programs (name: package)."""
    if os.geteuid() != 0:
        raise CannotRun("network namespaces need root; run it with sudo")
    missing = sorted({package for program, package in programs.items() if shutil.which(program) is None})
    if missing:
        raise CannotRun(f"programs are missing; `apt install {' '.join(missing)}` brings them")


def enter(module: str, arguments: Sequence[str]) -> None:
    """Replace this process by ``python -m module arguments`` with namespaces of its own.

    Return at once when that has happened already. Raise CannotRun without root or without a needed program.
    """
    if os.environ.get(INSIDE):
        return
    require(PROGRAMS)
    shell = ["unshare", "--mount", "sh", "-c", OWN_NAMES, "sh"]
    os.environ[INSIDE] = "yes"
    os.execvp(shell[0], [*shell, sys.executable, "-m", module, *arguments])


class Network:
    """A switch with its nodes: the end of the ``with`` block kills every process in it and removes it."""

    def __init__(self) -> None:
        self._addresses: dict[str, str] = {}

    def __enter__(self) -> Self:
        _ip("netns", "add", SWITCH)
        _ip("-n", SWITCH, "link", "add", "bridge", "type", "bridge")
        _ip("-n", SWITCH, "link", "set", "bridge", "up")
        return self

    def __exit__(self, *error: object) -> None:
        for name in self._addresses:
            self.kill(name)
        for name in (*self._addresses, SWITCH):
            _ip("netns", "delete", name)

    def plug(self, name: str) -> str:
        """Add a node with a cable to the switch and return its address."""
        address = f"10.77.0.{len(self._addresses) + 1}"
        self._addresses[name] = address
        _ip("netns", "add", name)
        _ip("-n", SWITCH, "link", "add", f"to-{name}", "type", "veth", "peer", "name", "eth0", "netns", name)
        _ip("-n", SWITCH, "link", "set", f"to-{name}", "master", "bridge", "up")
        _ip("-n", name, "address", "add", f"{address}/24", "dev", "eth0")
        for device in ("lo", "eth0"):
            _ip("-n", name, "link", "set", device, "up")
        return address

    def inside(self, name: str, argv: Sequence[str]) -> list[str]:
        """Return the command line that runs this one on that node."""
        return ["ip", "netns", "exec", name, *argv]

    def kill(self, name: str) -> None:
        """Kill every process on the node.

        All processes are stopped before the first one is killed, so that none reacts to the end of another.
        """
        while pids := [int(pid) for pid in _ip("netns", "pids", name).split()]:
            for number in (signal.SIGSTOP, signal.SIGKILL):
                for pid in pids:
                    with suppress(ProcessLookupError):
                        os.kill(pid, number)

    def cut(self, name: str, *, sent: bool = True, received: bool = True) -> None:
        """Drop every packet that the node sends to other nodes, or receives from them, or both."""
        rules = []
        if sent:
            rules.append(f'add rule bridge faults forward iifname "to-{name}" drop')
        if received:
            rules.append(f'add rule bridge faults forward oifname "to-{name}" drop')
        _nft(SWITCH, RULES + "\n".join(rules))

    def cut_loopback(self, name: str, port: int) -> None:
        """Drop the packets to and from this port inside the node."""
        directions = [f'add rule inet faults input iifname "lo" tcp {end} {port} drop' for end in _ENDS]
        _nft(name, LOOPBACK_RULES + "\n".join(directions))

    def heal(self, name: str) -> None:
        """Stop dropping packets of this node."""
        _nft(SWITCH, RULES)
        _nft(name, LOOPBACK_RULES)


_ENDS = ("dport", "sport")


def _ip(*words: str) -> str:
    return _run(["ip", *words])


def _nft(name: str, rules: str) -> None:
    _run(["ip", "netns", "exec", name, "nft", "-f", "-"], rules + "\n")


def _run(argv: Sequence[str], text: str = "") -> str:
    done = captured(argv, input=text)
    if done.returncode != 0:
        raise CannotRun(f"`{' '.join(argv)}` failed: {done.stderr.strip()}")
    return done.stdout
