"""A scene: some supervisors, one Consul, and one file in which their hooks record their facts.

Every test calls ``end``, which stops all nodes and then checks that nothing is left of them and that the
promises of ``judge`` hold. A test that breaks a promise on purpose says so with ``excuse`` or ``overlap``.
"""

import signal
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

import psutil

from supervisor.adapters.runtime.clock import boottime
from tests.consul.elections import judges
from tests.support.consul import Agent
from tests.support.proxy import Proxy
from tests.support.supervisor import (
    PATIENCE_S,
    Supervisor,
    assert_none_left,
    kill_all,
    name_of,
    processes_of,
    until,
)
from tests.support.tenures import (
    KILLED,
    SCRIPT,
    Record,
    most_at_once,
    read_records,
    shown,
    tenures,
    told_line,
    unfinished,
    wrong_tokens,
)

TTL = "3s"  # Consul ends a session 6 s after its last renewal, so that a slow machine loses no session
LOCK_DELAY = "4s"  # room 2.4 s with the hooks below
LOCK_DELAY_S = 4.0
ROOM_S = 4.0 - 0.5 - 0.1 - 1.0  # lock_delay - margin - kill_after of on_acquire - on_lose
# For tenures that must outlast the restart of a process on a busy machine: room 8.4 s.
LASTING = {"ttl": "5s", "lock_delay": "10s"}
LASTING_OVER_S = 11.0  # after a crash: the room and twice the ttl are over
LOSE = {"timeout": "900ms", "kill_after": "100ms"}
OTHER = {"timeout": "20s", "kill_after": "100ms"}


class Scene:
    """Supervisors of one election, and their Consul.

    name: the election; with ``/leader`` its key. Nodes have values of their name.
    section: the section of the file.
    key_suffix: makes the key of the name.
    """

    section: ClassVar[str] = "elections"
    key_suffix: ClassVar[str] = "/leader"
    limit: int = 1  # the most nodes that may act at once

    def __init__(self, agent: Agent, folder: Path, name: str) -> None:
        self.agent = agent
        self.folder = folder
        self.name = name
        self.key = f"{name}{self.key_suffix}"
        self.nodes: dict[str, Supervisor] = {}
        self.overlap = False  # an operator's act may let two nodes act at once
        self.restarts = False  # the next process finishes whatever a crash interrupted, and logs its findings
        self.terms = {"ttl": TTL, "lock_delay": LOCK_DELAY}  # of sessions
        self.forgets = False  # Consul began with empty data, so its indexes began again
        self._records = folder / "records"
        self._excused: set[str] = set()
        self._proxy: Proxy | None = None

    # --- configuration ---------------------------------------------------------------------------

    def hook(self, node: str, label: str, body: str = ":", **limits: object) -> dict[str, object]:
        """Return a hook that records its begin and end as ``label`` and does ``body`` between them."""
        base = LOSE if label.startswith("lose") else OTHER
        env = {"RECORDS": str(self._records), "NODE": node, "HOOK": label}
        return {"exec": ["/bin/sh", str(SCRIPT), body], "env": env, **base, **limits}

    def run(self, node: str, body: str) -> dict[str, object]:
        """Return a run child that records its begin and end as ``run`` and does ``body`` between them."""
        hook = self.hook(node, "run", body)
        return {"exec": hook["exec"], "env": hook["env"], "stop_timeout": "1500ms"}

    def lasting(self) -> None:
        """Give the nodes that start from here on leases that outlast a restart."""
        self.terms = LASTING

    def election(self, node: str, **changes: object) -> dict[str, object]:
        """Return an election whose hooks only record. A change to None leaves its key out."""
        return self._recording(node, {"key": self.key}, changes)

    def item(self, node: str, **changes: object) -> dict[str, object]:
        """Return the item of this scene for a node's file."""
        return self.election(node, **changes)

    def _recording(
        self, node: str, place: Mapping[str, object], changes: dict[str, object]
    ) -> dict[str, object]:
        session = {**self.terms, "name": f"{self.name}-{node}"}
        given = changes.pop("session", {})
        assert given is None or isinstance(given, Mapping)
        base: dict[str, object] = {
            **place,
            "value": node,
            "session": None if given is None else {**session, **given},
            "on_acquire": [self.hook(node, "acquire")],
            "on_lose": [self.hook(node, "lose")],
            "on_change": [self.hook(node, "change")],
            "rejoin_delay": "1s",
            **changes,
        }
        return {name: value for name, value in base.items() if value is not None}

    def config(
        self, items: Mapping[str, object], consul: Mapping[str, object] | None = None
    ) -> dict[str, object]:
        """Return the content of a node's file."""
        return {
            "consul": {"address": self.agent.url, **(consul or {})},
            "log": {"level": "debug", "format": "json"},
            self.section: dict(items),
        }

    # --- nodes -----------------------------------------------------------------------------------

    def node(
        self,
        node: str,
        *,
        consul: Mapping[str, object] | None = None,
        items: Mapping[str, object] | None = None,
        environ: Mapping[str, str] | None = None,
        **changes: object,
    ) -> Supervisor:
        """Start a node with the one item of this scene and these changes, or with ``items``."""
        if items is None:
            items = {self.name: self.item(node, **changes)}
        supervisor = Supervisor(self.folder / node, self.config(items, consul), environ)
        self.nodes[node] = supervisor
        supervisor.start()
        return supervisor

    def records_in(self, disk: Path, node: str) -> None:
        """Let a node that is yet to start write its records to this disk."""
        folder = Supervisor(self.folder / node, {}).records
        folder.symlink_to(disk)

    def leader(self, node: str, **how: Any) -> Supervisor:
        """Start a node alone, and return when it holds."""
        supervisor = self.node(node, **how)
        supervisor.wait_line("role", role="holding")
        return supervisor

    def waiter(self, node: str, **how: Any) -> Supervisor:
        """Start a node beside a leader, and return when it has its session and knows the leader."""
        supervisor = self.node(node, **how)
        until(lambda: self.session_of(node), f"a session of {node}\n{supervisor.log_tail()}")
        self.wait(node=node, stage="end", event="change")
        return supervisor

    def three(self, **changes: Any) -> tuple[Supervisor, Supervisor, Supervisor]:
        """Start nodes a, b and c: a leads, and b and c wait."""
        return self.leader("a", **changes), self.waiter("b", **changes), self.waiter("c", **changes)

    def kill(self, node: str) -> None:
        """Kill a node with SIGKILL, and excuse it from all promises that a dead process cannot keep."""
        self.nodes[node].kill()
        with self._records.open("a") as file:
            file.write(told_line(KILLED, node, boottime()))
        self.excuse(node)

    def excuse(self, node: str) -> None:
        """Allow this node to leave its session, and a tenure without on_lose, behind."""
        self._excused.add(node)

    @property
    def proxy(self) -> Proxy:
        """Start a proxy between Consul and the nodes that get its URL; it outlives all nodes."""
        if self._proxy is None:
            self._proxy = Proxy(self.agent.host, self.agent.port)
            self._proxy.__enter__()
        return self._proxy

    # --- the record of events ----------------------------------------------------------------------

    def records(self, **fields: object) -> list[Record]:
        """List the lines with these fields, oldest first."""
        return [
            record
            for record in read_records(self._records)
            if all(getattr(record, name) == value for name, value in fields.items())
        ]

    def wait(self, within_s: float = PATIENCE_S, **fields: object) -> Record:
        """Return the first line with these fields, once it is there."""
        return until(lambda: self.records(**fields), f"{fields}", within_s)[0]

    def calls(self, node: str, name: str = "") -> list[str]:
        """List the hooks that began on this node, except on_change, as ``EVENT REASON``, oldest first."""
        began = [
            r for r in self.records(node=node, stage="begin", name=name or self.name) if r.event != "change"
        ]
        return [f"{record.event} {record.reason}" for record in began]

    def told(self, node: str) -> list[str]:
        """List the facts of each on_change on this node, as ``REASON LEADER``, oldest first."""
        return [
            f"{r.reason} {r.leader}".rstrip() for r in self.records(node=node, stage="begin", event="change")
        ]

    def wait_told(self, node: str, what: str) -> None:
        """Return when on_change has run on that node with this reason and leader."""
        until(lambda: what in self.told(node), f"{node} is told {what}")

    def wait_told_leader(self, node: str, leader: str) -> None:
        """Return when the newest on_change of that node names this leader."""
        last = ([f"initial {leader}"], [f"leader-changed {leader}"])
        until(lambda: self.told(node)[-1:] in last, f"{node} is told that {leader} leads")

    def wait_leader(self, but: str = "", within_s: float = PATIENCE_S) -> str:
        """Return the node whose on_acquire has ended and that holds the key, if it is not ``but``."""

        def leading() -> str:
            entry = self.agent.kv_get(self.key)
            if entry is None or not entry["Session"]:
                return ""
            done = self.records(session=entry["Session"], event="acquire", stage="end", exit=0)
            return done[0].node if done and done[0].node != but else ""

        return until(leading, f"a leader other than {but!r}\n{shown(self.records())}", within_s)

    def session_of(self, node: str) -> str:
        """Return the id of the node's only session in Consul; blank when there is none."""
        ids = self.sessions_of(node)
        assert len(ids) < 2, f"{node} has {len(ids)} sessions"
        return ids[0] if ids else ""

    def sessions_of(self, node: str) -> list[str]:
        """List the ids of the node's sessions: several when a create got no response."""
        return [session["ID"] for session in self.sessions() if session["Name"] == f"{self.name}-{node}"]

    def wait_no_orphan(self, node: str) -> None:
        """Return when sessions whose create got no response have come to the end of their TTL."""
        until(lambda: len(self.sessions_of(node)) == 1, f"{node} has one session")

    def sessions(self) -> list[dict[str, Any]]:
        """List all sessions of this scene that Consul knows."""
        return [session for session in self.agent.sessions() if session["Name"].startswith(f"{self.name}-")]

    # --- acts of an operator -----------------------------------------------------------------------

    def register_check(self, check: str) -> None:
        """Register a check of the agent's node that passes until ``set_check`` changes it."""
        wanted = {"Name": check, "ID": check, "TTL": "600s", "Status": "passing"}
        self._put("/agent/check/register", wanted)
        self.agent.wait_check(check)

    def set_check(self, check: str, status: str) -> None:
        """Set the check to ``pass``, ``warn`` or ``fail``."""
        self._put(f"/agent/check/{status}/{check}")

    def _put(self, path: str, body: object | None = None) -> None:
        answer = self.agent.call("PUT", path, body)
        assert answer.status == 200, answer

    # --- the end ---------------------------------------------------------------------------------

    def stop(self) -> None:
        """Send SIGTERM to all running nodes at once; each must end with 0."""
        running = [node for node in self.nodes.values() if node.running]
        for node in running:
            node.signal(signal.SIGTERM)
        for node in running:
            assert node.wait() == 0, node.log_tail()

    def end(self) -> None:
        """Stop all running nodes, then judge the scene."""
        self.stop()
        for node in self.nodes.values():
            node.assert_no_fault()
        assert_none_left(self.processes)
        excused = {f"{self.name}-{node}" for node in self._excused}
        sessions = [session["Name"] for session in self.sessions() if session["Name"] not in excused]
        assert not sessions, f"sessions are left: {sessions}"
        self.judge()

    def judge(self) -> None:
        """Check the promises about hooks that hold in every scene."""
        seen = self.records()
        for name in {record.name for record in seen if record.name}:
            found = tenures(seen, name)
            if not self.overlap:
                most = most_at_once(found)
                assert most <= self.limit, f"{most} act at once: {found}\n{shown(seen)}"
            if not self.forgets:
                wrong = wrong_tokens(found, slots=self.limit > 1)
                assert not wrong, f"{wrong}:\n{shown(seen)}"
            if not self.restarts:
                judges.assert_once_each(seen, name)
                judges.assert_changes_are_changes(seen, name)
            open_ended = [tenure for tenure in unfinished(found) if tenure.node not in self._excused]
            assert not open_ended, f"on_lose did not run: {open_ended}\n{shown(seen)}"
            # Lines that a killed process had not logged yet are lost with it.
            for tenure in () if self.restarts else found:
                began = self.nodes[tenure.node].lines("hook-started", transition=f"{tenure.session}-acquire")
                assert began, f"on_lose without an on_acquire: {tenure}\n{shown(seen)}"

    def processes(self) -> list[psutil.Process]:
        """List all processes of the nodes and of their hooks; the agent's folder lies elsewhere."""
        return processes_of(str(self.folder))

    def sleeping(self) -> list[psutil.Process]:
        """List the processes among them that are the ``sleep`` of a hook or child."""
        return [process for process in self.processes() if "sleep" in name_of(process)]

    def close(self) -> None:
        """End every process, in any state."""
        for node in self.nodes.values():
            node.close()
        kill_all(self.processes())
        if self._proxy is not None:
            self._proxy.__exit__(None, None, None)

    def account(self) -> str:
        """Describe the scene, for the text of a failure."""
        logs = "\n".join(node.log_tail() for node in self.nodes.values())
        return f"{shown(self.records())}\n{logs}"
