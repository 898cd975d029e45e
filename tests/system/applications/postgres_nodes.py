"""Nodes of the PostgreSQL example on one machine, a writing client, a probe of each node, and their judge."""

import os
import shutil
import signal
import socket
import struct
import subprocess
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack, closing, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Self, TypeVar

import psutil

from tests.support.background import Worker
from tests.support.captured import captured
from tests.support.consul import HOST, free_ports
from tests.support.programs import script
from tests.support.supervisor import Supervisor, until
from tests.system.applications.stage import EXAMPLES, Stage

EXAMPLE = EXAMPLES / "postgresql"
BIN = Path("/usr/lib/postgresql/15/bin")
OWNER = "postgres"
ADDRESSES = ["192.0.2.11:5432", "192.0.2.12:5432", "192.0.2.13:5432"]  # as in the example
KEY = "service/postgresql/primary"
SESSION = {"ttl": "2s", "lock_delay": "18s"}
ANSWER_S = 2.0
PROBE_S = 0.02
PACE_S = 0.005
SOME = 20
PROTOCOL = 196608  # 3.0
LOCAL = "-c synchronous_commit=local"  # for a probe: a primary accepts its writes without a standby
SCHEMA = """
SET synchronous_commit = local;
ALTER ROLE replicator PASSWORD 'secret';
CREATE ROLE app LOGIN;
CREATE TABLE numbers (number integer PRIMARY KEY);
CREATE TABLE probes (node text);
GRANT ALL ON numbers, probes TO app;
GRANT pg_monitor TO app;
"""
HBA = """
local all postgres peer
host replication replicator 127.0.0.1/32 scram-sha-256
host postgres replicator 127.0.0.1/32 scram-sha-256
host postgres app 127.0.0.1/32 trust
"""

T = TypeVar("T")


class Refused(Exception):
    """The database has refused a command."""


class Connection:
    """A session of PostgreSQL as ``app``, over its own protocol.

    It raises OSError when it ends or gets no answer in time.
    """

    def __init__(self, port: int, options: str = "") -> None:
        self._socket = socket.create_connection((HOST, port), ANSWER_S)
        self._stream = self._socket.makefile("rb")
        words = ["user", "app", "database", "postgres", "options", options]
        body = struct.pack("!I", PROTOCOL) + b"".join(word.encode() + b"\0" for word in words) + b"\0"
        try:
            self._socket.sendall(struct.pack("!I", len(body) + 4) + body)
            self._answer()
        except BaseException:
            self.close()
            raise

    def ask(self, query: str) -> list[str]:
        """Run a query and return the first column; raise Refused when the query fails."""
        body = query.encode() + b"\0"
        self._socket.sendall(b"Q" + struct.pack("!I", len(body) + 4) + body)
        return self._answer()

    def _answer(self) -> list[str]:
        rows, error = [], ""
        while True:
            kind, body = self._message()
            if kind == b"D":
                (length,) = struct.unpack_from("!i", body, 2)
                rows.append(body[6 : 6 + max(length, 0)].decode())
            elif kind == b"E":
                error = body.replace(b"\0", b" ").decode()
            elif kind == b"Z":
                if error:
                    raise Refused(error)
                return rows

    def _message(self) -> tuple[bytes, bytes]:
        head = self._stream.read(5)
        if len(head) < 5:
            raise ConnectionError("closed")
        (length,) = struct.unpack("!I", head[1:])
        return head[:1], self._stream.read(length - 4)

    def close(self) -> None:
        self._stream.close()
        self._socket.close()


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
    """Run a command as the user postgres and return its output."""
    command = ["setpriv", f"--reuid={OWNER}", f"--regid={OWNER}", "--init-groups", *map(str, argv)]
    done = captured(command, input=input, cwd="/")
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
        drop = f"setpriv --reuid={OWNER} --regid={OWNER} --init-groups"
        script(self._home / "start", f"exec env -i PATH=$PATH {drop} {command}")
        for file in self._home.iterdir():
            shutil.chown(file, OWNER)
        (self._home / "passfile").chmod(0o600)

    def receiver(self, folder: Path) -> tuple[list[str], dict[str, str]]:
        """Return a command and its environment that, like a base backup, receives all WAL and confirms it."""
        source = f"host={HOST} port={self.port} user=replicator"
        command = [str(BIN / "pg_receivewal"), "-D", str(folder), "--synchronous", "-d", source]
        return command, {"PGPASSFILE": str(self._home / "passfile")}

    def ask(self, query: str, options: str = "") -> list[str]:
        """Run a query on the node and return its result; empty when PostgreSQL refuses or does not answer."""
        with suppress(OSError, Refused), closing(Connection(self.port, options)) as connection:
            return connection.ask(query)
        return []

    def is_primary(self) -> bool:
        return self.ask("SELECT pg_is_in_recovery()") == ["f"]

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

    def freeze(self) -> None:
        for process in self.processes():
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


@dataclass(frozen=True, slots=True)
class Write:
    """A write that a node accepted at some moment between ``sent`` and ``replied``."""

    node: str
    sent: float
    replied: float


def tenures(of_nodes: Sequence[Sequence[Write]]) -> list[str]:
    """Return the nodes that accepted writes, in order; raise AssertionError when two of them did so at once.

    A write was accepted after it was sent and before its reply came. So a write that was sent after another
    node's first reply was surely accepted later than that node's write.
    """
    taken = sorted((writes for writes in of_nodes if writes), key=lambda writes: writes[0].replied)
    for former, latter in zip(taken, taken[1:], strict=False):
        first, last = latter[0], former[-1]
        assert last.sent <= first.replied, f"{last.node} took {last} after {first.node} had taken {first}"
    return [writes[0].node for writes in taken]


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


class Probe(Worker):
    """A loop that tries to write to one node all the time, whether or not the node leads.

    Its writes need no standby.
    """

    def __init__(self, node: PostgresNode) -> None:
        self.taken: list[Write] = []
        self._node = node
        super().__init__()

    def _work(self) -> None:
        while not self._ended.wait(PROBE_S):
            with suppress(OSError, Refused), closing(Connection(self._node.port, LOCAL)) as connection:
                while not self._ended.wait(PROBE_S):
                    self._try(connection)

    def _try(self, connection: Connection) -> None:
        sent = time.monotonic()
        with suppress(Refused):
            connection.ask(f"INSERT INTO probes VALUES ('{self._node.name}')")
            self.taken.append(Write(self._node.name, sent, time.monotonic()))


class Client(Worker):
    """A client that writes one number after the other to the leading node, and records the confirmed ones.

    A primary confirms a number when a standby has it as well. After a refusal or an error the client
    waits ten times as long before it looks for the leader again.
    """

    def __init__(self, leader: Callable[[], PostgresNode | None]) -> None:
        self.confirmed: list[tuple[int, str]] = []  # the number, the node
        self._leader = leader
        self._number = 0
        super().__init__()

    def _work(self) -> None:
        while not self._ended.wait(10 * PACE_S):
            with suppress(OSError, Refused):
                if (node := self._leader()) is not None:
                    with closing(Connection(node.port)) as connection:
                        self._write(node.name, connection)

    def _write(self, node: str, connection: Connection) -> None:
        while not self._ended.wait(PACE_S):
            self._number += 1
            connection.ask(f"INSERT INTO numbers VALUES ({self._number})")
            self.confirmed.append((self._number, node))

    def by(self, node: PostgresNode) -> int:
        return sum(name == node.name for _, name in list(self.confirmed))


class PostgresDatabase:
    """A number of nodes, the client and the probes, which write while the ``with`` block lasts.

    The first node has the cluster, the others have nothing.
    """

    def __init__(self, stage: Stage, template: Path, home: Path, count: int) -> None:
        self._agent = stage.agent
        self._home = home
        ports = free_ports(count)
        self.nodes: list[PostgresNode] = []
        for name, port in zip("abc", ports, strict=False):
            (home / name).mkdir()
            shutil.chown(home / name, OWNER)
            self.nodes.append(PostgresNode(stage, home / name, port, ports))
        as_owner("/usr/bin/cp", "-a", template / "data", self.nodes[0].data)
        self.client = Client(self.leader)
        self.probes = [Probe(node) for node in self.nodes]
        self._exits = ExitStack()

    def __enter__(self) -> Self:
        self._reaper = Reaper(self._home)
        for worker in (self.client, *self.probes):
            self._exits.enter_context(worker)
        return self

    def __exit__(self, *error: object) -> None:
        for node in self.nodes:
            node.die()
        self._reaper.close()
        self._exits.close()

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
        before = self.client.by(node)
        self.wait(lambda: self.client.by(node) > before + SOME, f"{node.name} confirms")

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

    def lost(self, node: PostgresNode) -> list[int]:
        confirmed = {number for number, _ in list(self.client.confirmed)}
        return sorted(confirmed - set(map(int, node.ask("SELECT number FROM numbers"))))

    def judge(self, former: PostgresNode, new: PostgresNode) -> None:
        """Assert that one node after the other accepted writes, and that the new primary has lost none."""
        expected = [former.name] if new is former else [former.name, new.name]
        assert tenures([probe.taken for probe in self.probes]) == expected, self.account()
        assert self.client.by(former) and self.client.by(new)
        assert not self.lost(new)
        assert [node.name for node in self.nodes if node.is_primary()] == [new.name]


def make_home(folder: Path) -> Path:
    shutil.chown(folder, OWNER)
    folder.chmod(0o755)
    return folder
