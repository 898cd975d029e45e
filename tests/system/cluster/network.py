"""The network of the cluster, and whether this computer can have it."""

import os
import shutil
from collections.abc import Mapping
from typing import Self

from tests.support import network

PROGRAMS = {"ip": "iproute2", "nft": "nftables", "unshare": "util-linux", "setpriv": "util-linux"}


class CannotRun(Exception):
    """This machine or this user cannot have such a network; the text names the reason and the remedy."""


def require(programs: Mapping[str, str]) -> None:
    """Raise CannotRun without root, or without one of these programs (name: package)."""
    if os.geteuid() != 0:
        raise CannotRun("network namespaces need root; run it with sudo")
    missing = sorted({package for program, package in programs.items() if shutil.which(program) is None})
    if missing:
        raise CannotRun(f"programs are missing; `apt install {' '.join(missing)}` brings them")


class Network(network.Network):
    """The network of a cluster, which gives its nodes their addresses."""

    def __enter__(self) -> Self:
        require(PROGRAMS)
        return super().__enter__()

    def join(self, name: str) -> str:
        """Add a node with a cable to the switch, and return its address."""
        address = f"10.77.0.{len(self.machines) + 1}"
        self.plug(name, address)
        return address
