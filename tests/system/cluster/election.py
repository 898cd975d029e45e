"""The election for which nodes contend while the cluster is broken: its file, its hooks, its figures.

Its times are short, so that a fault takes seconds. `check` computes the figures that follow from them.
"""

import json
import os
import re
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import uuid4

import yaml

from tests.support.tenures import SCRIPT
from tests.system.cluster.cluster import Cluster
from tests.system.cluster.consul import HTTP_PORT
from tests.system.cluster.supervised import Supervised

ROOT = Path(__file__).resolve().parents[3]
COMMAND = str(Path(sys.executable).with_name("consul-supervisor"))
# Runs a command as on a machine of its own: $0 stands for its hardware, $1 is the file with its boot.
AS_MACHINE = """
mount -t tmpfs class /sys/class && mkdir -p /sys/class/dmi/id && echo "$0" >/sys/class/dmi/id/product_uuid &&
mount --bind "$1" /proc/sys/kernel/random/boot_id && shift && exec "$@"
"""
NAME = "cluster"
KEY = f"service/{NAME}/leader"
SHORT = "{ttl: 2s, lock_delay: 8s}"
OUTAGE_S = 120.0
QUICK = "{lock_delay: 7s, confirm_every: 1s, node_checks: [serfHealth]}"  # as in docs/safety.md


@dataclass(frozen=True, slots=True)
class Figures:
    """The figures that `check` prints of an election, in seconds."""

    ttl_s: float
    lock_delay_s: float
    room_s: float
    silence_s: float  # so long may a supervisor be frozen too: when it goes on, it starts on_lose in time
    failover_s: float


def settings(
    node: str, records: Path, quick: bool, fence: bool, outage_s: float | None = None
) -> dict[str, Any]:
    """Return the election for the file of this node; its hooks write their lines to ``records``."""
    env = {"RECORDS": str(records), "NODE": node, "HOOK": "hook"}
    call = {"exec": ["/bin/sh", str(SCRIPT), "sleep 0.1"], "env": env}
    target = '"$CONSUL_SUPERVISOR_PREVIOUS_TARGET"'
    shoot = f"exec {sys.executable} -m tests.system.cluster.shoot {records.parent} {target}"
    fenced = {
        "shell": shoot,
        "cwd": str(ROOT),
        "timeout": "5s",
        "target": node,
        "after": "1s",
        "exclusive": True,
        **({} if outage_s is None else {"outage": f"{outage_s:g}s"}),
    }
    return {
        **({"fence": fenced} if fence else {}),
        "key": KEY,
        "value": node,
        "session": {**yaml.safe_load(QUICK if quick else SHORT), "name": session_name(node)},
        "on_acquire": [{**call, "timeout": "5s", "kill_after": "100ms"}],
        "on_lose": [{**call, "timeout": "300ms" if quick else "1900ms", "kill_after": "100ms"}],
    }


def session_name(node: str) -> str:
    """Return the name of this node's sessions, by which Consul's list identifies them."""
    return f"{NAME}-{node}"


def supervisor(
    cluster: Cluster,
    node: str,
    elections: Mapping[str, object],
    parent: Path,
    more: Mapping[str, object] | None = None,
) -> Supervised:
    """Return `consul-supervisor run` for this node, beside its agent; its files are below ``parent``.

    more: the further sections of its file. None: several elections have a fleet.
    """
    folder = parent / f"{node}-supervisor"
    folder.mkdir()
    file = write(folder, elections, more)
    boots(folder)
    places = {"STATE_DIRECTORY": str(folder / "state"), "RUNTIME_DIRECTORY": str(folder)}
    environ = {"PATH": os.environ["PATH"], **places}
    as_machine = ("unshare", "--mount", "sh", "-c", AS_MACHINE, node, str(folder / "boot"))
    argv = cluster.network.machines[node].inside(*as_machine, COMMAND, "run", str(file))
    return Supervised(argv, folder / "supervisor.log", environ)


def boots(folder: Path) -> None:
    """Let the next supervisor in this folder run in another boot of its machine."""
    (folder / "boot").write_text(f"{uuid4()}\n")


def write(folder: Path, elections: Mapping[str, object], more: Mapping[str, object] | None = None) -> Path:
    """Write the file of a supervisor, also of one that runs, and return it. more: as in ``supervisor``."""
    file = folder / "config.yaml"
    config = {
        "consul": {"address": f"http://127.0.0.1:{HTTP_PORT}"},
        "log": {"level": "debug", "format": "json"},
    }
    if more is None:
        more = {"fleet": {}} if len(elections) > 1 else {}  # whose notes let each machine be shot once
    file.write_text(json.dumps({**config, **more, "elections": elections}))  # JSON is YAML
    return file


def several(settings: Mapping[str, Any], count: int) -> dict[str, Any]:
    """Return so many elections of a node, of which the first one is that of ``settings``."""
    keys = [KEY, *(f"service/more{number}/leader" for number in range(1, count))]
    return {key.split("/")[1]: {**settings, "key": key} for key in keys}


def figures(election: Mapping[str, object], folder: Path) -> Figures:
    """Return the figures that `check` prints of this election."""
    file = folder / "figures.yaml"
    file.write_text(json.dumps({"elections": {NAME: election}}))
    said = subprocess.run([COMMAND, "check", str(file)], capture_output=True, text=True, check=True).stdout
    return Figures(
        ttl_s=_seconds(r"^  ttl +(\S+)$", said),
        lock_delay_s=_seconds(r"^  lock_delay +(\S+)$", said),
        room_s=_seconds(r"^  room +(\S+) =", said),
        silence_s=_seconds(r"^  silence +(\S+) are", said),
        failover_s=_seconds(r"^  failover +(\S+) at most", said),
    )


def _seconds(pattern: str, said: str) -> float:
    found = re.search(pattern, said, re.MULTILINE)
    assert found, f"`check` prints no {pattern}:\n{said}"
    parts = re.findall(r"([\d.]+)(ms|s|m)", found[1])
    return sum(float(number) * {"ms": 0.001, "s": 1.0, "m": 60.0}[unit] for number, unit in parts)
