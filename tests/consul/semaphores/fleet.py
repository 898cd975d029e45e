"""Nodes that all have one file from ``examples``, with commands of the test's own.

Only places and times of an example are replaced, and each text to replace must occur in it. ``systemctl`` and
the programs in /usr/local/sbin are small scripts, which append their command to ``journal`` as ``WHAT NODE``.
Each line is one write, so the order of the lines is the order of the writes.
"""

import os
import signal
from collections.abc import Iterable, Mapping
from pathlib import Path

import psutil
import yaml

from tests.support.consul import Agent
from tests.support.supervisor import Supervisor, assert_none_left, kill_all, processes_of, until
from tests.support.tenures import most_between

EXAMPLES = Path(__file__).parents[3] / "examples"


class Fleet:
    """Nodes of one example, with an agent of their own.

    text: the content of the example, with its comments.
    """

    def __init__(self, agent: Agent, folder: Path, example: str, times: Mapping[str, str]) -> None:
        self.agent = agent
        self.folder = folder
        self.text = next(EXAMPLES.rglob(f"{example}.yaml")).read_text()
        for old, new in times.items():
            assert old in self.text, f"{example} does not say {old!r}"
            self.text = self.text.replace(old, new)
        self.nodes: dict[str, Supervisor] = {}
        self._journal = folder / "journal"
        self._programs = folder / "bin"
        self._programs.mkdir(parents=True)

    # --- nodes -----------------------------------------------------------------------------------

    def provide(self, program: str, script: str) -> None:
        """Write a program in place of the machine's own.

        ``$RUN`` is its node's /run, and ``note`` appends to the journal.
        """
        file = self._programs / program
        file.write_text(f'#!/bin/sh\nnote() {{ echo "$1 $NODE" >>"$JOURNAL"; }}\n{script}')
        file.chmod(0o755)

    def start(self, *names: str) -> None:
        """Start these nodes at once, with files that differ only in places."""
        for name in names:
            config = yaml.safe_load(self.placed(name, self.text))
            log = {"level": "debug", "format": "json"}
            self.nodes[name] = Supervisor(self.folder / name, {**config, "log": log}, self.environ(name))
            self.run(name).mkdir()
            self.nodes[name].start()

    def placed(self, name: str, text: str) -> str:
        """Return the text with this node's /run and our programs."""
        places = {"/run/": f"{self.run(name)}/", "/usr/local/sbin/": f"{self._programs}/"}
        places["/usr/bin/systemctl"] = f"{self._programs}/systemctl"
        for old, new in places.items():
            text = text.replace(old, new)
        return text

    def environ(self, name: str) -> dict[str, str]:
        """Return the environment of every process on this node."""
        own = {"NODE": name, "RUN": str(self.run(name)), "JOURNAL": str(self._journal)}
        path = f"{self._programs}:{os.environ['PATH']}"
        return {**own, "PATH": path, "CONSUL_HTTP_ADDR": self.agent.url}

    def run(self, name: str) -> Path:
        return self.folder / name / "run"

    def wait_role(self, role: str, names: Iterable[str]) -> None:
        """Return when each of these nodes has this role."""
        for name in names:
            node = self.nodes[name]
            until(lambda node=node: self._role(node) == role, f"{name} is {role}\n{node.log_tail()}")  # type: ignore[misc]

    def _role(self, node: Supervisor) -> str:
        return next((str(line["role"]) for line in reversed(node.lines("role"))), "")

    # --- the journal ------------------------------------------------------------------------------

    def journal(self, what: str = "") -> list[tuple[str, str]]:
        """List (what, node), oldest first; a line that is still being written does not count."""
        text = self._journal.read_text() if self._journal.exists() else ""
        lines = [line for line in text.splitlines(keepends=True) if line.endswith("\n")]
        told = [(first, second) for first, second in map(str.split, lines)]
        return [each for each in told if what in ("", each[0])]

    def nodes_that(self, what: str) -> list[str]:
        """List the nodes that have done this, oldest first."""
        return [node for _, node in self.journal(what)]

    def wait(self, what: str, count: int) -> list[str]:
        """Return the nodes that have done this, once it has happened this often."""
        return until(
            lambda: names if len(names := self.nodes_that(what)) >= count else [],
            f"{count} x {what}, not {self.account()}",
        )

    def most_at_once(self, begin: str, end: str) -> int:
        """Count how many nodes were between these two lines at once at most."""
        return most_between(self.journal(), begin, end)

    def in_line(self, prefix: str) -> int:
        """Count the contenders below this prefix, holders among them."""
        return len([entry for entry in self.agent.kv_list(f"{prefix}/") if entry.get("Session")])

    # --- the end ---------------------------------------------------------------------------------

    def end(self) -> None:
        """Stop all running nodes, and check that nothing is left of them."""
        running = [node for node in self.nodes.values() if node.running]
        for node in running:
            node.signal(signal.SIGTERM)
        for node in running:
            assert node.wait() == 0, node.log_tail()
        for node in self.nodes.values():
            node.assert_no_fault()
        assert not self.agent.sessions(), "sessions are left"
        assert_none_left(self.processes)

    def processes(self) -> list[psutil.Process]:
        """List all processes of the nodes and of their children."""
        return [each for name in self.nodes for each in processes_of(str(self.folder / name))]

    def close(self) -> None:
        """End every process, in any state."""
        for node in self.nodes.values():
            node.close()
        kill_all(self.processes())

    def account(self) -> str:
        """Describe the fleet, for the text of a failure."""
        logs = "\n".join(node.log_tail() for node in self.nodes.values())
        return f"{self.journal()}\n{logs}"
