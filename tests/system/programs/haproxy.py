"""A real HAProxy for one test, from the example's file with the test's addresses."""

import csv
import re
import socket
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from tests.support.consul import HOST
from tests.support.pages import ROOT
from tests.support.program import Program
from tests.support.supervisor import until

PROGRAM = "/usr/sbin/haproxy"
EXAMPLE = ROOT / "examples" / "haproxy" / "haproxy.cfg"


class Backend(NamedTuple):
    """The ports of one node's application and supervisor."""

    name: str
    application_port: int
    http_port: int


def filled_in(example: str, port: int, nodes: Sequence[Backend], item: str, admin: Path) -> str:
    """Return the example with these ports and this election; ``admin`` is a socket to inspect HAProxy."""
    text = example.replace("bind :8020", f"bind {HOST}:{port}").replace("/leader/namenode", f"/leader/{item}")
    # As another user, HAProxy would lose the signal that it gets when the tests die.
    text = re.sub(r"    (?:user|group) haproxy.*\n", "", text)
    text = text.replace("global\n", f"global\n    stats socket {admin} mode 600\n", 1)
    text, servers = re.subn(r"    server vm.*\n", "", text)
    assert servers == 3, "the example has three nodes"
    text = text.replace("check port 8555 ", "check ")
    lines = [f"    server {n.name} {HOST}:{n.application_port} port {n.http_port}\n" for n in nodes]
    return text + "".join(lines)


class HAProxy(Program):
    """An HAProxy that listens on ``port`` while the ``with`` block runs."""

    def __init__(self, folder: Path, port: int, nodes: Sequence[Backend], item: str) -> None:
        self.port = port
        self._admin, config = folder / "admin.sock", folder / "haproxy.cfg"
        super().__init__([PROGRAM, "-db", "-f", str(config)], folder / "haproxy.log")
        config.write_text(filled_in(EXAMPLE.read_text(), port, nodes, item, self._admin))

    def _is_ready(self) -> bool:
        assert self.running, self.log
        return self._admin.exists() and bool(self.up())

    def up(self) -> set[str]:
        """Return the nodes to which it would send clients now, with "nobody" when it knows none."""
        with socket.socket(socket.AF_UNIX) as asked:
            try:
                asked.connect(str(self._admin))
            except ConnectionRefusedError:
                return set()
            asked.sendall(b"show stat\n")
            answer = b"".join(iter(lambda: asked.recv(1 << 16), b"")).decode()
        rows = csv.DictReader(answer.removeprefix("# ").splitlines())
        servers = [row for row in rows if row["pxname"] == "namenode" and row["svname"] not in ENDS]
        return {row["svname"] for row in servers if row["status"].startswith("UP")} or {"nobody"}

    def wait_up(self, *names: str) -> None:
        until(
            lambda: self.up() == set(names or ("nobody",)),
            f"HAProxy sends to {names or 'nobody'}, not {self.up()}",
        )


ENDS = ("FRONTEND", "BACKEND")
