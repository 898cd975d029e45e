"""Nodes of one application on one machine: its programs, their supervisors, one real Consul.

A supervisor has the example's own file and runs the example's own scripts. Only paths, ports and the times of
the sessions differ, because all nodes are on one machine and a test should not wait for a minute. Nothing
outlives the ``with`` block.
"""

import os
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Self

import yaml

from tests.support.consul import Agent
from tests.support.supervisor import PATIENCE_S, ROOT, TAIL_CHARS, Supervisor, kill_all, processes_of

EXAMPLES = ROOT / "examples"
SESSION = {"ttl": "2s", "lock_delay": "12s"}
INSTALLED = "/usr/local/sbin/"  # where the examples expect their scripts


class Program:
    """A program of the application in the foreground, killed at the end as if its machine had died."""

    def __init__(
        self, name: str, argv: Sequence[str], folder: Path, environ: Mapping[str, str] | None = None
    ) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.name = name
        self._argv = list(argv)
        self._folder = folder
        self._environ = {**os.environ, **(environ or {})}
        self._log = folder / f"{name}.log"
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start the program, also once more; each start appends to one log."""
        assert not self.running, f"{self.name} is running"
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                ["setpriv", "--pdeathsig", "KILL", *self._argv],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd=self._folder,
                env=self._environ,
                start_new_session=True,
            )

    @property
    def running(self) -> bool:
        """Whether the process has not ended."""
        return self._process is not None and self._process.poll() is None

    def kill(self) -> None:
        """Kill the program and its whole process group."""
        if self._process is not None:
            if self.running:
                os.killpg(self._process.pid, 9)
            self._process.wait(PATIENCE_S)

    @property
    def log_tail(self) -> str:
        """The end of the program's log."""
        return self._log.read_text(errors="replace")[-TAIL_CHARS:] if self._log.exists() else ""


class Stage:
    """The processes that one test starts; ``agent`` is its Consul."""

    def __init__(self, agent: Agent, folder: Path) -> None:
        self.agent = agent
        self.folder = folder
        self._exits = ExitStack()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self._exits.close()

    def program(self, name: str, argv: Sequence[str], environ: Mapping[str, str] | None = None) -> Program:
        """Make a program that runs until it is killed or the test is over."""
        made = Program(name, argv, self.folder / name, environ)
        self._exits.callback(made.kill)
        made.start()
        return made

    def place(self, name: str) -> Path:
        """Return the folder of the node's supervisor, which holds its control socket.

        The name of the folder is one letter because the path of a socket has 107 bytes at most.
        """
        return self.folder / name / "s"

    def supervisor(
        self,
        name: str,
        example: Path,
        environ: Mapping[str, str] | None = None,
        replaced: Mapping[str, str] | None = None,
        session: Mapping[str, str] | None = None,
    ) -> Supervisor:
        """Make the supervisor of the node ``name`` without starting it.

        ``environ`` is the environment of the supervisor and of its hooks.
        """
        config = configuration(example, replaced or {}, session or SESSION)
        config["consul"] = {"address": self.agent.url}
        made = Supervisor(self.place(name), config, environ)
        self._exits.callback(made.close)
        return made


def configuration(example: Path, replaced: Mapping[str, str], session: Mapping[str, str]) -> dict[str, Any]:
    """Return the example's configuration, with the scripts of this folder and these sessions."""
    text = example.read_text().replace(INSTALLED, f"{example.parent}/")
    for old, new in replaced.items():
        assert old in text, f"{example} does not say {old}"
        text = text.replace(old, new)
    config: dict[str, Any] = yaml.safe_load(text)
    for items in (config.get("elections"), config.get("semaphores")):
        for item in (items or {}).values():
            item["session"] = {**item.get("session", {}), **session}
    return config


def end_all(folder: Path) -> None:
    """Kill the processes that mention this folder, until none is left."""
    while left := processes_of(str(folder)):
        kill_all(left)
