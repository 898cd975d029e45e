"""The identity of this machine, host and boot, which a record carries."""

import socket
from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from pathlib import Path

from supervisor.core.settings import Place

START_FIELD = 19  # of /proc/PID/stat behind the name: starttime, the 22nd field in proc(5)


@dataclass(frozen=True, slots=True)
class MachineIdentity:
    """The machine, host and boot of a record. A cloned disk or another boot must not act on its lock."""

    machine: str
    host: str
    boot: str


def identity_here() -> MachineIdentity:
    machine = _text("/etc/machine-id")
    return MachineIdentity(machine, socket.gethostname(), _boot())


@cache
def place_here() -> Place:
    """Return where this process runs, for its tenure records.

    The UUID of the hardware tells a machine from one whose disk is a copy, and only root may read it. Without
    it the machine counts as no other's. A container that boots anew counts as the same boot, because another
    one of its host may look like it.
    """
    machine, uuid = _text("/etc/machine-id"), _text("/sys/class/dmi/id/product_uuid")
    # Both are confidential (machine-id(5)), and whoever may read the key sees the record.
    known = sha256(f"consul-supervisor {machine} {uuid}".encode()).hexdigest()[:32]
    boot = _text("/proc/sys/kernel/random/boot_id")
    return Place(known if machine and uuid else "", socket.gethostname(), boot)


def _boot() -> str:
    """Return the kernel's id of this boot and the start time of process 1.

    In a container whose file system is protected, the host's id stays when the container boots anew. The
    start time of process 1 does not.
    """
    first = _text("/proc/1/stat").rpartition(")")[2].split()
    return " ".join([_text("/proc/sys/kernel/random/boot_id"), *first[START_FIELD : START_FIELD + 1]])


def _text(path: str) -> str:
    try:
        return Path(path).read_text(encoding="ascii").strip()
    except OSError:
        return ""
