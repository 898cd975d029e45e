"""A real Consul agent for one test: its process, and a small client of the test's own.

The client is synchronous and shares nothing with the product, so that a fault of the product's
transport cannot hide itself. An agent never outlives its test: leaving the ``with`` block kills
it, and PDEATHSIG does when the test process itself is killed.
"""

import base64
import http.client
import json
import os
import random
import signal
import socket
import subprocess
import time
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self
from urllib.parse import quote, urlencode

from tests.support.patience import PATIENCE_S

BINARY = Path(__file__).resolve().parents[2] / ".cache" / "consul" / "consul"
HOST = "127.0.0.1"
READY_S = PATIENCE_S  # a -dev agent takes 0.3 s, one with a data directory 1.8 s, on an idle machine
STOP_S = PATIENCE_S  # SIGTERM takes 0.5 s, a client agent's leave 5 s
CALL_S = PATIENCE_S / 2
WAYS = ("server", "client agent")  # the agent that a test uses; a client agent forwards requests to a server
LOG_TAIL = 3000  # characters
START_TRIES = 5  # a port may be taken between its choice and Consul's bind
PORTS = range(10_000, 32_000)  # below the kernel's ephemeral ports, so no outgoing connection takes one


@dataclass(frozen=True, slots=True)
class Answer:
    """The answer of Consul: the status, X-Consul-Index (0 when absent) and the body."""

    status: int
    index: int
    text: str

    def json(self) -> Any:
        return json.loads(self.text)


class Client:
    """Consul's HTTP API for a test: one connection for each call, no retries.

    ``call`` returns every answer. The other methods raise AssertionError with Consul's text on a status that
    they do not expect. All raise OSError when there is no answer.
    """

    def __init__(self, host: str, port: int, token: str | None = None) -> None:
        self.host = host
        self.port = port
        self.token = token

    @property
    def url(self) -> str:
        return f"http://{self.host}:{self.port}"

    def call(
        self,
        method: str,
        path: str,
        body: bytes | object | None = None,
        query: Mapping[str, str | int] | None = None,
        timeout_s: float = CALL_S,
    ) -> Answer:
        """Send one request; a body that is not bytes is sent as JSON. ``path`` is without ``/v1``."""
        target = f"/v1{path}"
        if query:
            target += ("&" if "?" in path else "?") + urlencode(query)
        sent = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
        headers = {} if self.token is None else {"X-Consul-Token": self.token}
        connection = http.client.HTTPConnection(self.host, self.port, timeout=timeout_s)
        try:
            connection.request(method, target, body=sent, headers=headers)
            response = connection.getresponse()
            text = response.read().decode()
            return Answer(response.status, int(response.headers.get("X-Consul-Index") or 0), text)
        except http.client.HTTPException as error:
            raise ConnectionError(f"{method} {target}: {error!r}") from error
        finally:
            connection.close()

    def kv_get(self, key: str) -> dict[str, Any] | None:
        """Return the entry with Consul's own names. None: absent. Value is bytes, Session "" for none."""
        answer = self.call("GET", f"/kv/{quote(key)}?consistent")
        return _entry(_expect(answer, 200, 404).json()[0]) if answer.status != 404 else None

    def kv_list(self, prefix: str) -> list[dict[str, Any]]:
        """Return all entries below a prefix, each as ``kv_get`` returns it."""
        answer = _expect(self.call("GET", f"/kv/{quote(prefix)}?recurse&consistent"), 200, 404)
        return [_entry(entry) for entry in answer.json()] if answer.status == 200 else []

    def kv_put(self, key: str, value: bytes, **query: str | int) -> bool:
        """Send a plain PUT, as an operator does; ``cas=…`` and ``flags=…`` as Consul takes them."""
        return bool(_expect(self.call("PUT", f"/kv/{quote(key)}", value, query)).json())

    def kv_delete(self, key: str) -> None:
        _expect(self.call("DELETE", f"/kv/{quote(key)}"))

    def acquire(self, key: str, session: str, value: bytes = b"") -> bool:
        """Lock the key; False when it is held or in its lock-delay."""
        return self.kv_put(key, value, acquire=session)

    def release(self, key: str, session: str, value: bytes = b"") -> bool:
        """Unlock the key; False when that session does not hold it."""
        return self.kv_put(key, value, release=session)

    def session_create(self, **fields: object) -> str:
        """Create a session, and return its id; the fields are Consul's (TTL="2s", LockDelay="0s", …).

        Unlike Consul's default, a session without NodeChecks is bound to no check.
        """
        answer = _expect(self.call("PUT", "/session/create", {"NodeChecks": [], **fields}))
        return str(answer.json()["ID"])

    def session_destroy(self, session: str) -> None:
        """End a session; one that is gone is no error."""
        _expect(self.call("PUT", f"/session/destroy/{session}"))

    def sessions(self) -> list[dict[str, Any]]:
        listed: list[dict[str, Any]] = _expect(self.call("GET", "/session/list?consistent")).json()
        return listed

    def txn(self, operations: Sequence[Mapping[str, object]]) -> Answer:
        """Send a transaction, whose values are base64 already. Return also an answer with 409."""
        return self.call("PUT", "/txn", list(operations))


class Agent(Client):
    """One Consul agent, by default ``-dev``, in memory.

    persistent: a server that keeps its data.
    servers: the agent of which this one is a client agent, as users run one on each machine.
    config: settings that replace ours, as Consul's JSON configuration.

    All agents allow sessions of one second (``session_ttl_min``) and listen on free loopback ports. A started
    agent answers writes.
    """

    def __init__(
        self,
        folder: Path,
        *,
        persistent: bool = False,
        servers: "Agent | None" = None,
        leave_on_terminate: bool = False,
        config: Mapping[str, object] | None = None,
        token: str | None = None,
    ) -> None:
        super().__init__(HOST, 0, token)
        self.folder = folder
        self._dev = not persistent and servers is None
        self.serf_port = self.server_port = 0
        self._config: dict[str, object] = {
            "bind_addr": HOST,
            "node_name": f"test-{uuid.uuid4().hex[:12]}",
            "performance": {"raft_multiplier": 1},
            "session_ttl_min": "1s",
            "leave_on_terminate": leave_on_terminate,
            "disable_update_check": True,
            "log_level": "warn",
        }
        if persistent:
            self._config |= {"server": True, "bootstrap_expect": 1, "data_dir": str(folder / "data")}
        self._config |= config or {}
        if servers is not None:
            joins = {"retry_join": [f"{HOST}:{servers.serf_port}"], "retry_interval": "100ms"}
            self._config |= {"data_dir": str(folder / "data"), **joins}
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *error: object) -> None:
        self.kill()

    @property
    def log_path(self) -> Path:
        """The file of Consul's output, over all its starts."""
        return self.folder / "consul.log"

    @property
    def log(self) -> str:
        return self.log_path.read_text(errors="replace") if self.log_path.exists() else ""

    @property
    def pid(self) -> int:
        assert self._process is not None, "the agent is not running"
        return self._process.pid

    @property
    def is_client(self) -> bool:
        """Whether the agent forwards requests to a server."""
        return "retry_join" in self._config

    def wait_check(self, check: str) -> None:
        """Return when the servers know this check of the agent's node, a little after the agent."""
        give_up_at = time.monotonic() + READY_S
        while time.monotonic() < give_up_at:
            known = _expect(self.call("GET", f"/health/node/{self._config['node_name']}")).json()
            if any(one["CheckID"] == check for one in known):
                return
            time.sleep(0.01)
        raise AssertionError(f"the servers do not know the check {check}")

    def start(self) -> None:
        """Start the agent, and return when a leader exists and writes are answered.

        The first start chooses the ports, and later ones (``restart``) keep them.
        """
        assert self._process is None, "the agent is running"
        for _ in range(1 if self.port else START_TRIES):
            if not self.port:
                self._write_config()
            self._spawn()
            if self._ready():
                return
            self.kill()
            if "address already in use" not in self.log:
                break
            self.port = 0
        raise RuntimeError(f"Consul did not start; the end of its log:\n{self.log[-LOG_TAIL:]}")

    def begin(self) -> None:
        """Start the agent, and return at once, because it waits for other servers."""
        self._write_config()
        self._spawn()

    def wait_ready(self) -> None:
        """Return when writes are answered, as after a ``thaw`` when the agent elects again."""
        if not self._ready():
            raise RuntimeError(f"Consul does not answer; the end of its log:\n{self.log[-LOG_TAIL:]}")

    def stop(self) -> None:
        """Send SIGTERM, and wait until the agent has ended."""
        self._end(signal.SIGTERM)

    def kill(self) -> None:
        """Send SIGKILL, which also ends a frozen agent, and wait; a dead one is no error."""
        self._end(signal.SIGKILL)

    def restart(self) -> None:
        """Stop the agent if it runs, and start it on the same ports; only a persistent one keeps its data."""
        self.stop()
        self.start()

    def adjust(self, **config: object) -> None:
        """Add these settings without a restart, which Consul allows for a few."""
        path = self.folder / "consul.json"
        path.write_text(json.dumps({**json.loads(path.read_text()), **config}))
        os.kill(self.pid, signal.SIGHUP)

    def freeze(self) -> None:
        """Send SIGSTOP: the kernel accepts connections, and no request is ever answered.

        Returns when all threads have stopped, because a thread may still answer after the signal was sent.
        """
        os.kill(self.pid, signal.SIGSTOP)
        os.waitid(os.P_PID, self.pid, os.WSTOPPED)

    def thaw(self) -> None:
        """Send SIGCONT. Until ``wait_ready`` the agent may answer 500, because it must elect itself again."""
        os.kill(self.pid, signal.SIGCONT)

    def _write_config(self) -> None:
        http_port, server_port, serf_port = free_ports(3)
        chosen = {"http": http_port, "server": server_port, "serf_lan": serf_port}
        wanted = self._config.get("ports", {})
        assert isinstance(wanted, Mapping), "ports is a mapping"
        ports = {**chosen, "serf_wan": -1, "dns": -1, "grpc": -1, **wanted}
        self.port, self.serf_port = int(ports["http"]), int(ports["serf_lan"])
        self.server_port = int(ports["server"])
        self.folder.mkdir(parents=True, exist_ok=True)
        (self.folder / "consul.json").write_text(json.dumps({**self._config, "ports": ports}))

    def _spawn(self) -> None:
        if not BINARY.exists():
            raise FileNotFoundError(f"cannot start Consul: {BINARY} is not there; run `make setup`")
        # setpriv rather than preexec_fn: nothing of Python runs between fork and exec.
        argv = ["setpriv", "--pdeathsig", "KILL", str(BINARY), "agent"]
        argv += ["-dev"] if self._dev else []
        argv += ["-config-file", str(self.folder / "consul.json")]
        environment = {"PATH": os.environ["PATH"], "HOME": str(self.folder)}
        with self.log_path.open("ab") as log:
            self._process = subprocess.Popen(
                argv,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                cwd=self.folder,
                env=environment,
                start_new_session=True,  # only pytest gets Ctrl-C, and then ends the agent
            )

    def _ready(self) -> bool:
        """Return whether a session can be made, which needs the leader, our node and its serfHealth.

        Our node's name excludes another agent on the port that ours could not bind.
        """
        assert self._process is not None, "spawned"
        wanted = {"Node": self._config["node_name"], "TTL": "60s"}
        give_up_at = time.monotonic() + READY_S
        while time.monotonic() < give_up_at and self._process.poll() is None:
            try:
                made = self.call("PUT", "/session/create", wanted, timeout_s=READY_S)
            except OSError:
                time.sleep(0.01)
                continue
            if made.status == 200:
                self.session_destroy(made.json()["ID"])
                return True
            if made.status == 403:  # access control is on, or this agent takes no writes, leader or not
                leader = self.call("GET", "/status/leader", timeout_s=READY_S)
                if leader.status != 200 or leader.json():
                    return True
            time.sleep(0.01)
        return False

    def _end(self, number: signal.Signals) -> None:
        if self._process is None:
            return
        self._process.send_signal(number)
        try:
            self._process.wait(STOP_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
            raise
        finally:
            self._process = None


def _expect(answer: Answer, *statuses: int) -> Answer:
    assert answer.status in (statuses or (200,)), f"Consul answered {answer.status}: {answer.text}"
    return answer


def _entry(entry: dict[str, Any]) -> dict[str, Any]:
    return {**entry, "Value": base64.b64decode(entry["Value"] or ""), "Session": entry.get("Session", "")}


def free_ports(count: int) -> list[int]:
    """Return ports that are free now, at random, so that parallel workers rarely meet."""
    ports: list[int] = []
    for port in random.SystemRandom().sample(PORTS, 200):
        if _is_free(port, socket.SOCK_STREAM) and _is_free(port, socket.SOCK_DGRAM):
            ports.append(port)
            if len(ports) == count:
                return ports
    raise RuntimeError("cannot start Consul: no free port among 200 tried")


def _is_free(port: int, kind: socket.SocketKind) -> bool:
    with socket.socket(socket.AF_INET, kind) as probe:
        try:
            probe.bind((HOST, port))
        except OSError:
            return False
    return True
