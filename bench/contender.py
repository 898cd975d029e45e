"""A process that contends for a lock: consul-supervisor, its ``lock``, `consul lock`, or the floor.

All of them run the same stamp program with the same settings of their session, and are started and stopped in
one way, so that only the contenders differ.
"""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from tests.support.consul import BINARY

if TYPE_CHECKING:
    from bench.lab import Rig

COMMAND = (sys.executable, "-m", "supervisor")
STOP_S = 20.0
EQUAL_TERMS = {"ttl": "15s", "lock_delay": "15s", "node_checks": ["serfHealth"]}
"""The session of `consul lock`, whose settings cannot be changed."""


class Contender:
    """One process, which may be started again after its end. Leaving its ``with`` kills it."""

    def __init__(
        self, name: str, argv: Sequence[str], environ: Mapping[str, str], folder: Path, log_path: Path
    ) -> None:
        self.name = name
        self._argv = ["setpriv", "--pdeathsig", "KILL", *argv]
        self._environ = environ
        self._folder = folder
        self._log_path = log_path
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._process is not None:
            os.killpg(self._process.pid, signal.SIGKILL)  # the group, because `consul lock` has a child
            self._process.wait()

    @property
    def pid(self) -> int:
        """The process id."""
        assert self._process is not None, f"{self.name} is not running"
        return self._process.pid

    @property
    def cpu_s(self) -> float:
        """The user and system time of all threads so far, without children."""
        stat = Path(f"/proc/{self.pid}/stat").read_text()
        fields = stat.rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def start(self) -> None:
        """Start the process, with its output in its log."""
        assert self._process is None, f"{self.name} is running"
        with self._log_path.open("ab") as log:
            self._process = subprocess.Popen(
                self._argv,
                cwd=self._folder,
                env=self._environ,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    def terminate(self) -> None:
        """Send SIGTERM, as systemd or an operator would."""
        os.kill(self.pid, signal.SIGTERM)

    def wait_gone(self) -> None:
        """Wait for the end of the process. Raises RuntimeError when it does not end with 0 in time."""
        assert self._process is not None
        try:
            code = self._process.wait(STOP_S)
        except subprocess.TimeoutExpired:
            raise RuntimeError(f"{self.name} did not end within {STOP_S:g} s of SIGTERM") from None
        self._process = None
        if code != 0:
            raise RuntimeError(f"{self.name} ended with {code}")


Maker = Callable[["Rig", str, str, str], Contender]
"""Makes a contender for FOLDER/.lock from (rig, address of Consul, folder of the key, name)."""


def consul_supervisor(rig: "Rig", url: str, folder: str, name: str) -> Contender:
    """Return a supervisor of one election, with the session of `consul lock`."""
    election = {
        "key": f"{folder}/.lock",
        "session": {**EQUAL_TERMS, "name": folder},
        **stamping_hooks(rig, name),
    }
    return supervisor_of(rig, url, name, {"bench": election})


def supervisor_of(
    rig: "Rig",
    url: str,
    name: str,
    items: Mapping[str, Any],
    kind: str = "elections",
    port: int | None = None,
) -> Contender:
    """Return a supervisor of these elections or semaphores, else with its defaults. ``port``: of HTTP."""
    path = write_config(rig, url, name, items, kind, port)
    return rig.contender(name, [*COMMAND, "run", str(path)])


def write_config(
    rig: "Rig",
    url: str,
    name: str,
    items: Mapping[str, Any],
    kind: str = "elections",
    port: int | None = None,
    places: Mapping[str, str] | None = None,
) -> Path:
    """Write the file of the supervisor of this name, and return its path.

    ``places``: its folder of records and its control socket. None: its environment names them.
    """
    path = rig.folder / f"{name}.yaml"
    config: dict[str, Any] = {"consul": {"address": url}, **(places or {}), kind: items}
    if port is not None:
        config["http"] = {"listen": f"127.0.0.1:{port}"}
    path.write_text(json.dumps(config))  # JSON is YAML
    return path


def stamping_hooks(rig: "Rig", name: str) -> dict[str, Any]:
    """Return on_acquire and on_lose as stamps.

    on_lose lasts 20 ms, because a shorter one would end during the work of its start and measure that work.
    """
    return {
        "on_acquire": [{"exec": rig.stamping(name, "acquire")}],
        "on_lose": [{"exec": rig.stamping(name, "lose", "rest")}],
    }


def consul_lock(rig: "Rig", url: str, folder: str, name: str, before: Sequence[str] = ()) -> Contender:
    """Return a `consul lock` that runs its child without a shell. ``before``: what starts the child."""
    child = [*before, *rig.stamping(name, "child", "wait")]
    return rig.contender(name, [str(BINARY), "lock", f"-http-addr={url}", "-shell=false", folder, *child])


def lock_command(rig: "Rig", url: str, folder: str, name: str, before: Sequence[str] = ()) -> Contender:
    """Return a ``lock`` with the session of `consul lock`. ``before``: what starts the child."""
    child = [*before, *rig.stamping(name, "child", "wait")]
    options = ["--ttl", EQUAL_TERMS["ttl"], "--lock-delay", EQUAL_TERMS["lock_delay"]]
    argv = [*COMMAND, "lock", *map(str, options), f"{folder}/.lock", "--", *child]
    return rig.contender(name, argv, {"CONSUL_HTTP_ADDR": url})


def floor(rig: "Rig", url: str, folder: str, name: str) -> Contender:
    """Return the least program that can take the lock."""
    child = rig.stamping(name, "child", "wait")
    argv = [sys.executable, "-I", "-S", str(Path(__file__).with_name("floor.py")), url, folder, *child]
    return rig.contender(name, argv)
