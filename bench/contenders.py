"""The contenders of a lock: consul-supervisor, its ``lock``, `consul lock`, and the floor.

All of them run the same stamp program with the same settings of their session.
"""

import json
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from bench.contender import Contender
from bench.lab import Rig
from tests.support.consul import BINARY

COMMAND = (sys.executable, "-m", "supervisor")
EQUAL_TERMS = {"ttl": "15s", "lock_delay": "15s", "node_checks": ["serfHealth"]}
"""The session of `consul lock`, whose settings cannot be changed."""

Maker = Callable[[Rig, str, str, str], Contender]
"""Makes a contender for FOLDER/.lock from (rig, address of Consul, folder of the key, name)."""


def consul_supervisor(rig: Rig, url: str, folder: str, name: str) -> Contender:
    """Return a supervisor of one election, with the session of `consul lock`."""
    return supervisor_of(rig, url, name, {"bench": _election(rig, folder, name)})


def fenced_supervisor(rig: Rig, url: str, folder: str, name: str) -> Contender:
    """Return the same with a fence, which a hand-over in order never runs."""
    fence = {"exec": ["/bin/false"], "target": name}
    return supervisor_of(rig, url, name, {"bench": _election(rig, folder, name) | {"fence": fence}})


def _election(rig: Rig, folder: str, name: str) -> dict[str, Any]:
    session = {**EQUAL_TERMS, "name": folder}
    return {"key": f"{folder}/.lock", "session": session, **stamping_hooks(rig, name)}


def supervisor_of(rig: Rig, url: str, name: str, elections: Mapping[str, Any]) -> Contender:
    """Return a supervisor of these elections, else with its defaults."""
    return rig.contender(name, [*COMMAND, "run", str(write_config(rig, url, name, elections))])


def write_config(rig: Rig, url: str, name: str, elections: Mapping[str, Any]) -> Path:
    """Write the file of the supervisor of this name, and return its path."""
    path = rig.folder / f"{name}.yaml"
    path.write_text(json.dumps({"consul": {"address": url}, "elections": elections}))  # JSON is YAML
    return path


def stamping_hooks(rig: Rig, name: str) -> dict[str, Any]:
    """Return on_acquire and on_lose as stamps.

    on_lose lasts 20 ms, because a shorter one would end during the work of its start and measure that work.
    """
    return {
        "on_acquire": [{"exec": rig.stamping(name, "acquire")}],
        "on_lose": [{"exec": rig.stamping(name, "lose", "rest")}],
    }


def consul_lock(rig: Rig, url: str, folder: str, name: str, before: Sequence[str] = ()) -> Contender:
    """Return a `consul lock` that runs its child without a shell. ``before``: what starts the child."""
    child = [*before, *rig.stamping(name, "child", "wait")]
    return rig.contender(name, [str(BINARY), "lock", f"-http-addr={url}", "-shell=false", folder, *child])


def lock_command(rig: Rig, url: str, folder: str, name: str, before: Sequence[str] = ()) -> Contender:
    """Return a ``lock`` with the session of `consul lock`. ``before``: what starts the child."""
    child = [*before, *rig.stamping(name, "child", "wait")]
    options = ["--ttl", EQUAL_TERMS["ttl"], "--lock-delay", EQUAL_TERMS["lock_delay"]]
    argv = [*COMMAND, "lock", *map(str, options), f"{folder}/.lock", "--", *child]
    return rig.contender(name, argv, {"CONSUL_HTTP_ADDR": url})


def floor(rig: Rig, url: str, folder: str, name: str) -> Contender:
    """Return the least program that can take the lock."""
    child = rig.stamping(name, "child", "wait")
    argv = [sys.executable, "-I", "-S", str(Path(__file__).with_name("floor.py")), url, folder, *child]
    return rig.contender(name, argv)
