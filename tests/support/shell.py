"""A bash that runs what a page shows, beside a Consul of its own, and leaves nothing behind."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psutil

from tests.support.consul import BINARY, HOST, free_ports
from tests.support.supervisor import PATIENCE_S, ROOT

MARK = "---this command is over---"
# In this order; what differs from run to run, and nothing else.
VARIABLE = (
    (r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d+Z", "TIME"),
    (r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}", "ID"),
    (r"\btoken \d+", "token N"),
    (r"\b\d+\.\d+ s left", "N s left"),
)


class Shell:
    """A bash that is told one command after the other, in a folder with the commands on its PATH."""

    def __init__(self, folder: Path) -> None:
        (folder / "bin").mkdir()
        http, server, serf = free_ports(3)
        ports = {"http": http, "server": server, "serf_lan": serf, "serf_wan": -1, "dns": -1, "grpc": -1}
        config = folder / "consul-ports.json"
        config.write_text(json.dumps({"bind_addr": HOST, "ports": ports}))
        # The shown commands, but that each dies with its shell and Consul has ports of this test's own.
        self._put(folder, "consul", f'{BINARY} "$@" -config-file={config}')
        self._put(folder, "consul-supervisor", f'{sys.executable} -m supervisor "$@"')
        (folder / "examples").symlink_to(ROOT / "examples")
        self._bash = subprocess.Popen(
            ["setpriv", "--pdeathsig", "KILL", "bash", "--noprofile", "--norc"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            cwd=folder,
            env={
                "PATH": f"{folder / 'bin'}:{os.environ['PATH']}",
                "HOME": str(folder),
                "PYTHONPATH": str(ROOT),
                "CONSUL_HTTP_ADDR": f"{HOST}:{http}",
            },
        )
        self.run("set -m")  # %1 is for shells with job control

    def _put(self, folder: Path, program: str, line: str) -> None:
        file = folder / "bin" / program
        file.write_text(f"#!/bin/sh\nexec setpriv --pdeathsig KILL {line}\n")
        file.chmod(0o755)

    def run(self, text: str) -> str:
        """What a command prints, on both streams."""
        assert self._bash.stdin is not None and self._bash.stdout is not None
        self._bash.stdin.write(f"{text}\necho '{MARK}'\n")
        self._bash.stdin.flush()
        printed = ""
        for line in self._bash.stdout:
            if line == f"{MARK}\n":
                return printed
            printed += line
        raise AssertionError(f"the shell ended at: {text}")

    def close(self) -> None:
        """End the shell and whatever it started."""
        started = psutil.Process(self._bash.pid).children(recursive=True)
        with self._bash:
            self._bash.kill()
        for process in started:
            try:
                process.kill()
            except psutil.NoSuchProcess:
                continue
        psutil.wait_procs(started, timeout=PATIENCE_S)


def steps(session: str) -> Iterator[tuple[str, str]]:
    """The commands of a shell session, here-documents included, each with the output it shows."""
    for step in re.split(r"^\$ ", session, flags=re.MULTILINE)[1:]:
        line, _, rest = step.partition("\n")
        if here := re.search(r"<<'(\w+)'", line):
            document, end, rest = rest.partition(f"{here[1]}\n")
            line = f"{line}\n{document}{end}"
        yield line, rest


def constant(text: str) -> str:
    """The text without what differs each time."""
    for pattern, stands_for in VARIABLE:
        text = re.sub(pattern, stands_for, text)
    return text.strip()
