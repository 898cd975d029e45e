"""The election for which nodes contend while the cluster is broken: its file, its hooks, its figures.

Its times are short, so that a fault takes seconds. `check` computes the figures that follow from them.
"""

import json
import re
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.support.tenures import SCRIPT
from tests.system.cluster.cluster import Cluster
from tests.system.cluster.consul import HTTP_PORT
from tests.system.cluster.supervised import Supervised

COMMAND = str(Path(sys.executable).with_name("consul-supervisor"))
NAME = "cluster"
KEY = f"service/{NAME}/leader"
TTL_S, LOCK_DELAY_S = 2.0, 8.0


@dataclass(frozen=True, slots=True)
class Figures:
    """The figures that `check` prints of an election, in seconds."""

    room_s: float
    interval_s: float
    failover_s: float
    lock_delay_s: float = LOCK_DELAY_S
    ttl_s: float = TTL_S

    @property
    def freeze_s(self) -> float:
        """The longest time for which a frozen supervisor still starts on_lose in time.

        When it froze, its newest contact was at most an interval and an exchange old.
        """
        return self.room_s - 2 * self.interval_s


def settings(node: str, records: Path) -> dict[str, Any]:
    """Return the election for the file of this node; its hooks write their lines to ``records``."""
    env = {"RECORDS": str(records), "NODE": node, "HOOK": "hook"}
    call = {"exec": ["/bin/sh", str(SCRIPT), "sleep 0.1"], "env": env}
    return {
        "key": KEY,
        "value": node,
        "session": {"ttl": f"{TTL_S:g}s", "lock_delay": f"{LOCK_DELAY_S:g}s", "name": session_name(node)},
        "on_acquire": [{**call, "timeout": "5s", "kill_after": "100ms"}],
        "on_lose": [{**call, "timeout": "1900ms", "kill_after": "100ms"}],
    }


def session_name(node: str) -> str:
    """Return the name of this node's sessions, by which Consul's list identifies them."""
    return f"{NAME}-{node}"


def supervisor(cluster: Cluster, node: str, elections: Mapping[str, object], parent: Path) -> Supervised:
    """Return `consul-supervisor run` for this node, beside its agent; its files are below ``parent``."""
    folder = parent / f"{node}-supervisor"
    folder.mkdir()
    file = folder / "config.yaml"
    address = f"http://127.0.0.1:{HTTP_PORT}"
    config = {"consul": {"address": address}, "log": {"level": "debug", "format": "json"}}
    file.write_text(json.dumps({**config, "elections": elections}))  # JSON is YAML
    environ = {"STATE_DIRECTORY": str(folder / "state"), "RUNTIME_DIRECTORY": str(folder)}
    argv = cluster.network.inside(node, [COMMAND, "run", str(file)])
    return Supervised(argv, folder / "supervisor.log", environ)


def figures(file: Path) -> Figures:
    """Return the figures that `check` prints of the only election in this file."""
    said = subprocess.run([COMMAND, "check", str(file)], capture_output=True, text=True, check=True).stdout
    return Figures(
        room_s=_seconds(r"^  room +(\S+) =", said),
        interval_s=_seconds(r"2 x interval (\S+)$", said),
        failover_s=_seconds(r"^  failover +(\S+) at most", said),
    )


def _seconds(pattern: str, said: str) -> float:
    found = re.search(pattern, said, re.MULTILINE)
    assert found, f"`check` prints no {pattern}:\n{said}"
    parts = re.findall(r"([\d.]+)(ms|s|m)", found[1])
    return sum(float(number) * {"ms": 0.001, "s": 1.0, "m": 60.0}[unit] for number, unit in parts)
