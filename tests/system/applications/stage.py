"""Nodes of one application on one machine: its programs, their supervisors, one real Consul.

A supervisor has the example's own file and runs the example's own scripts. Only paths, ports and the times of
the sessions differ, because all nodes are on one machine and a test should not wait for a minute. Nothing
outlives the ``with`` block.
"""

import os
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Self

import yaml

from tests.support.consul import Agent
from tests.support.program import Program
from tests.support.supervisor import ROOT, Supervisor, kill_all, processes_of

EXAMPLES = ROOT / "examples"
SESSION = {"ttl": "2s", "lock_delay": "12s"}
INSTALLED = "/usr/local/sbin/"  # where the examples expect their scripts


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
        folder = self.folder / name
        made = Program(argv, folder / f"{name}.log", {**os.environ, **(environ or {})}, folder)
        return self._exits.enter_context(made)

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
