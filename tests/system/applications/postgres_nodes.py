"""Nodes of the PostgreSQL example on one machine, the rows that they have confirmed, and who is a primary."""

import os
import shutil
import signal
import subprocess
from collections.abc import Callable, Sequence
from contextlib import suppress
from itertools import count
from pathlib import Path
from typing import Self, TypeVar

import psutil

from tests.support.captured import captured
from tests.support.consul import HOST, free_ports
from tests.support.programs import script
from tests.support.supervisor import Supervisor, until
from tests.system.applications.stage import EXAMPLES, Stage

EXAMPLE = EXAMPLES / "postgresql"
BIN = Path("/usr/lib/postgresql/15/bin")
OWNER = "postgres"
DROP = ("setpriv", f"--reuid={OWNER}", f"--regid={OWNER}", "--init-groups")
ADDRESSES = ["192.0.2.11:5432", "192.0.2.12:5432", "192.0.2.13:5432"]  # as in the example
KEY = "service/postgresql/primary"
SESSION = {"ttl": "2s", "lock_delay": "18s"}
ANSWER_S = 2
LOCAL = "SET synchronous_commit = local; "  # a primary takes such a row without a standby
SCHEMA = f"""{LOCAL}
ALTER ROLE replicator PASSWORD 'secret';
CREATE TABLE numbers (number integer PRIMARY KEY);
"""
HBA = """
local all postgres peer
host replication replicator 127.0.0.1/32 scram-sha-256
host postgres replicator 127.0.0.1/32 scram-sha-256
"""

T = TypeVar("T")


def make_template(folder: Path) -> None:
    """Make a stopped cluster as README.md makes it on the first node; all nodes begin with copies of it."""
    as_owner(BIN / "initdb", "-D", folder / "data", "--no-sync")
    as_owner(
        BIN / "pg_ctl", "start", "-s", "-D", folder / "data", "-l", folder / "log", "-o", f"-h '' -k {folder}"
    )
    psql: tuple[str | Path, ...] = (BIN / "psql", *"-X -q -v ON_ERROR_STOP=1 -d postgres -h".split(), folder)
    # Only root may look into a checkout.
    as_owner(*psql, input=(EXAMPLE / "replicator.sql").read_text())
    as_owner(*psql, input=SCHEMA)
    as_owner(BIN / "pg_ctl", "stop", "-s", "-D", folder / "data")


def as_owner(*argv: str | Path, input: str = "") -> str:
    """Run a command as the user postgres and return its output. AssertionError: it failed."""
    done = captured([*DROP, *argv], input=input, cwd="/")
    assert done.returncode == 0, done
    return done.stdout


class PostgresNode:
    """One machine: its PostgreSQL, which the hooks start and stop, and its supervisor."""

    def __init__(self, stage: Stage, home: Path, port: int, ports: Sequence[int]) -> None:
        self.name = home.name
        self.port = port
        self.address = f"{HOST}:{port}"
        self.data = home / "data"
        self._home = home
        self._write_files(ports)
        environ = {
            "POSTGRESQL_ADDRESS": self.address,
            "POSTGRESQL_NODES": " ".join(f"{HOST}:{each}" for each in ports),
            "POSTGRESQL_DATA": str(self.data),
            "POSTGRESQL_CONFIG": str(home / "postgresql.conf"),
            "POSTGRESQL_SOCKET": str(home),
            "POSTGRESQL_START": str(home / "start"),
            "POSTGRESQL_PASSFILE": str(home / "passfile"),
        }
        self.supervisor: Supervisor = stage.supervisor(
            self.name, EXAMPLE / "postgresql.yaml", environ, session=SESSION
        )

    def _write_files(self, ports: Sequence[int]) -> None:
        example = (EXAMPLE / "postgresql-failover.conf").read_text()
        for theirs, port in zip(ADDRESSES, ports, strict=False):
            assert theirs in example
            example = example.replace(theirs, f"{HOST}:{port}")
        (self._home / "postgresql-failover.conf").write_text(example)
        lines = [
            f"data_directory = '{self.data}'",
            f"hba_file = '{self._home}/pg_hba.conf'",
            f"unix_socket_directories = '{self._home}'",
            f"port = {self.port}",
            "shared_buffers = 16MB",
            "log_min_messages = log",  # keeps the writes that a standby refuses out of the log
            "include = 'postgresql-failover.conf'",
            f"listen_addresses = '{HOST}'",
        ]
        (self._home / "postgresql.conf").write_text("\n".join([*lines, ""]))
        (self._home / "pg_hba.conf").write_text(HBA)
        (self._home / "passfile").write_text("*:*:*:replicator:secret\n")
        # As with systemctl start, the process is no child of the hook and inherits nothing from it.
        config = f"-o '-c config_file={self._home}/postgresql.conf'"
        command = f"{BIN}/pg_ctl start -s -w -D {self.data} -l {self._home}/log {config}"
        script(self._home / "start", f"exec env -i PATH=$PATH {' '.join(DROP)} {command}")
        for file in self._home.iterdir():
            shutil.chown(file, OWNER)
        (self._home / "passfile").chmod(0o600)

    def receiver(self, folder: Path) -> tuple[list[str], dict[str, str]]:
        """Return a command and its environment that, like a base backup, receives all WAL and confirms it."""
        source = f"host={HOST} port={self.port} user=replicator"
        command = [str(BIN / "pg_receivewal"), "-D", str(folder), "--synchronous", "-d", source]
        return command, {"PGPASSFILE": str(self._home / "passfile")}

    def ask(self, query: str) -> list[str]:
        """Run a query on the node and return its result; empty when PostgreSQL refuses or does not answer."""
        psql = f"timeout {ANSWER_S} {BIN}/psql -XAtq -d postgres -p {self.port} -h {self._home} -c".split()
        done = captured([*DROP, *psql, query], cwd="/")
        return done.stdout.splitlines() if done.returncode == 0 else []

    def is_primary(self) -> bool:
        return self.ask("SELECT pg_is_in_recovery()") == ["f"]

    def rows(self) -> set[int]:
        return set(map(int, self.ask("SELECT number FROM numbers")))

    def sends_to(self, other: "PostgresNode") -> bool:
        """Return whether the other node is a standby that has everything that this primary has written."""
        name = f"application_name = '{other.address}'"
        return self.ask(f"SELECT state FROM pg_stat_replication WHERE {name}") == ["streaming"]

    def processes(self) -> list[psutil.Process]:
        """Return all processes of this PostgreSQL, the postmaster first."""
        with suppress(OSError, psutil.Error):
            postmaster = psutil.Process(int((self.data / "postmaster.pid").read_text().split()[0]))
            if str(self.data) in " ".join(postmaster.cmdline()):
                return [postmaster, *postmaster.children(recursive=True)]
        return []

    def freeze(self, named: str = "") -> None:
        for process in self.processes():
            if not named or named in " ".join(process.cmdline()):
                process.suspend()

    def die(self) -> None:
        if self.supervisor.running:
            self.supervisor.kill()
        self.freeze()
        for process in self.processes():
            process.kill()
        until(lambda: not self.processes(), f"the PostgreSQL of {self.name} is gone")

    def said(self, text: str) -> bool:
        return any(text in line.get("text", "") for line in self.supervisor.lines("hook-output"))

    def copies(self) -> int:
        texts = [line.get("text", "") for line in self.supervisor.lines("hook-output")]
        return sum("pg_basebackup: copying" in text for text in texts)

    def account(self) -> str:
        log = self._home / "log"
        return f"{self.supervisor.log_tail()}\n{log.read_text()[-3000:] if log.exists() else ''}"


class Reaper:
    """A process that ends everything below a folder when the tests' own process is killed.

    It is needed because PostgreSQL is no child of the tests.
    """

    SCRIPT = """
    tail --pid="$0" -f /dev/null
    for file in "$1"/*/data/postmaster.pid; do kill -KILL "$(head -n 1 "$file")"; done
    rm -rf "$1"
    """

    def __init__(self, home: Path) -> None:
        argv = ["/bin/sh", "-c", self.SCRIPT, str(os.getpid()), str(home)]
        self._process = subprocess.Popen(argv, start_new_session=True, stdin=subprocess.DEVNULL)

    def close(self) -> None:
        os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()


class PostgresDatabase:
    """A number of nodes, which run while the ``with`` block lasts, and the rows that they have confirmed.

    The first node has the cluster, the others have nothing.
    """

    def __init__(self, stage: Stage, template: Path, home: Path, nodes: int) -> None:
        self._agent = stage.agent
        self._home = home
        self._numbers = count(1)
        self._confirmed: set[int] = set()
        ports = free_ports(nodes)
        self.nodes: list[PostgresNode] = []
        for name, port in zip("abc", ports, strict=False):
            (home / name).mkdir()
            shutil.chown(home / name, OWNER)
            self.nodes.append(PostgresNode(stage, home / name, port, ports))
        as_owner("/usr/bin/cp", "-a", template / "data", self.nodes[0].data)

    def __enter__(self) -> Self:
        self._reaper = Reaper(self._home)
        return self

    def __exit__(self, *error: object) -> None:
        for node in self.nodes:
            node.die()
        self._reaper.close()

    def wait(self, condition: Callable[[], T], what: str) -> T:
        """Wait until the condition is true; fail with the account of all nodes when that does not happen."""
        return until(condition, what, log=self.account)

    def account(self) -> str:
        return "\n".join(node.account() for node in self.nodes)

    def leader(self) -> PostgresNode | None:
        entry = self._agent.kv_get(KEY)
        if entry is None or not entry["Session"]:
            return None
        return next(node for node in self.nodes if node.address == entry["Value"].decode())

    def wait_leader(self, but: PostgresNode | None = None) -> PostgresNode:
        """Wait for a node that leads and has finished on_acquire, and return it."""

        def leading() -> PostgresNode | None:
            entry, node = self._agent.kv_get(KEY), self.leader()
            if entry is None or node is None or node is but:
                return None
            held = node.supervisor.lines("role", role="holding", session=entry["Session"])
            return node if held else None

        found = self.wait(leading, "a leader")
        assert found is not None
        return found

    def wait_confirmed(self, node: PostgresNode) -> None:
        """Wait until the node has confirmed a new row; it does so when a standby has the row as well."""

        def confirmed() -> bool:
            number = next(self._numbers)
            told = node.ask(f"INSERT INTO numbers VALUES ({number}) RETURNING number")
            self._confirmed |= set(map(int, told))
            return bool(told)

        self.wait(confirmed, f"{node.name} confirms")

    def led_by_first(self) -> Sequence[PostgresNode]:
        """Start all nodes; return them when the first leads, the others follow, and commits are confirmed."""
        first, *others = self.nodes
        folder = first.supervisor.folder
        (folder / "postgresql-lead-anyway").touch()  # the others have nothing yet and do not answer
        for node in self.nodes:
            node.supervisor.start()
        assert self.wait_leader() is first
        assert not (folder / "postgresql-lead-anyway").exists()
        self.wait_sent(first, *others)
        self.wait_confirmed(first)
        # From now on each of the nodes can lead.
        for node in others:
            node.supervisor.wait_line("role", role="waiting")
        return self.nodes

    def wait_sent(self, leader: PostgresNode, *others: PostgresNode) -> None:
        """Wait until the other nodes are standbys that have everything that the leader has written."""
        for node in others:
            self.wait(lambda node=node: leader.sends_to(node), f"{node.name} streams")  # type: ignore[misc]

    def judge(self, new: PostgresNode) -> None:
        """Assert that the new primary is the only one, and has each row that was ever confirmed."""
        assert self._confirmed <= new.rows(), self.account()
        assert [node.name for node in self.nodes if node.is_primary()] == [new.name]


def make_home(folder: Path) -> Path:
    shutil.chown(folder, OWNER)
    folder.chmod(0o755)
    return folder
