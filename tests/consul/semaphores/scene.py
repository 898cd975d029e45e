"""A scene of semaphores: some supervisors on one prefix, and the acts of an operator on its keys.

``end`` judges more than that of elections: at most ``limit`` nodes act at once, each with its own number, and
below the prefix only ``.lock`` is left, without holders.
"""

import json
from typing import Any, ClassVar

from tests.consul.elections.scene import LOCK_DELAY, LOCK_DELAY_S, ROOM_S, Scene
from tests.support.supervisor import PATIENCE_S, Supervisor, until
from tests.support.tenures import Record, shown, tenures, wrong_numbers

FLAGS = 16210313421097356768  # api.SemaphoreFlagValue
PRUNE_DELAY = LOCK_DELAY
PRUNE_DELAY_S = LOCK_DELAY_S
TICK_S = 0.02  # /proc/uptime is cut to this, at both ends

__all__ = ["FLAGS", "PRUNE_DELAY", "PRUNE_DELAY_S", "ROOM_S", "TICK_S", "SlotScene"]


class SlotScene(Scene):
    """Supervisors of one semaphore, and their Consul.

    name: the semaphore and its prefix.
    limit: the limit of the files and of the judge.
    """

    section: ClassVar[str] = "semaphores"
    key_suffix: ClassVar[str] = "/.lock"
    limit: int = 3
    leaves = False  # the test names the keys that are left below the prefix

    def item(self, node: str, **changes: object) -> dict[str, object]:
        """Return a semaphore whose hooks only record."""
        place = {"prefix": self.name, "limit": self.limit, "prune_delay": self.terms["lock_delay"]}
        return self._recording(node, place, changes)

    # --- nodes -----------------------------------------------------------------------------------

    def holder(self, node: str, **how: Any) -> Supervisor:
        """Start a node while a slot is free, and return when it holds."""
        return self.leader(node, **how)

    def waiter(self, node: str, **how: Any) -> Supervisor:
        """Start a node while no slot is free, and return when it stands in line."""
        supervisor = self.node(node, **how)
        until(lambda: node in self.line(), f"{node} in line\n{supervisor.log_tail()}")
        return supervisor

    def full(self, **changes: Any) -> list[Supervisor]:
        """Start nodes a to d: a, b and c hold, and d waits."""
        return [*(self.holder(node, **changes) for node in "abc"), self.waiter("d", **changes)]

    # --- the state in Consul ----------------------------------------------------------------------

    def lock(self) -> dict[str, Any]:
        """Return the content of ``.lock`` as it is; empty when it is absent."""
        entry = self.agent.kv_get(self.key)
        content: dict[str, Any] = json.loads(entry["Value"]) if entry is not None else {}
        return content

    def holders(self) -> list[str]:
        """List the nodes that ``.lock`` names, in its order."""
        node_of = self._node_of()
        return [node_of.get(session, session) for session in self.lock().get("Holders") or ()]

    def line(self) -> list[str]:
        """List the nodes with a living contender key and no slot, the oldest first."""
        node_of, holders = self._node_of(), self.lock().get("Holders") or ()
        keys = sorted(self.contenders(), key=lambda entry: int(entry["CreateIndex"]))
        waiting = [entry["Session"] for entry in keys if entry["Session"] not in holders]
        return [node_of[session] for session in waiting if session in node_of]

    def contenders(self) -> list[dict[str, Any]]:
        return [entry for entry in self.agent.kv_list(f"{self.name}/") if entry["Key"] != self.key]

    def contender_key(self, node: str) -> str:
        """Return the name of this node's contender key."""
        return f"{self.name}/{self.session_of(node)}"

    def wait_gone(self, key: str, within_s: float = PATIENCE_S) -> None:
        until(lambda: self.agent.kv_get(key) is None, f"{key} is gone", within_s)

    def wait_holders(self, *nodes: str, within_s: float = PATIENCE_S) -> None:
        """Return when ``.lock`` names these nodes, in any order, and their on_acquire has ended."""

        def there() -> bool:
            if sorted(self.holders()) != sorted(nodes):
                return False
            done = {r.session for r in self.records(event="acquire", stage="end", exit=0)}
            return done >= set(self.lock()["Holders"])

        until(there, f"{nodes} hold, not {self.holders()}\n{shown(self.records())}", within_s)

    def next_begin(self, node: str) -> Record:
        """Return the begin of that node's first on_acquire."""
        return self.wait(node=node, event="acquire", stage="begin")

    def _node_of(self) -> dict[str, str]:
        names = ((each["ID"], each["Name"].removeprefix(f"{self.name}-")) for each in self.sessions())
        return dict(names)

    # --- acts of an operator -----------------------------------------------------------------------

    def edit(self, **fields: object) -> int:
        """Write ``.lock`` with other fields by check-and-set, as operators should, and return its index."""
        while True:
            entry = self.agent.kv_get(self.key)
            assert entry is not None, "there is no .lock"
            content = {**json.loads(entry["Value"]), **fields}
            if self.put_lock(json.dumps(content).encode(), cas=entry["ModifyIndex"]):
                written = self.agent.kv_get(self.key)
                assert written is not None
                return int(written["ModifyIndex"])

    def put_lock(self, value: bytes, **query: int) -> bool:
        """Write ``.lock`` as it stands, with the flags of a semaphore unless others are given."""
        return self.agent.kv_put(self.key, value, **{"flags": FLAGS, **query})

    # --- the end ---------------------------------------------------------------------------------

    def judge(self) -> None:
        """Check the promises about hooks, and the keys that are left below the prefix."""
        super().judge()
        if not self.leaves and not self._excused:
            wrong = wrong_numbers(tenures(self.records(), self.name), self.limit)
            assert self.overlap or not wrong, f"{wrong}:\n{shown(self.records())}"
            self.judge_leftovers()

    def judge_leftovers(self) -> None:
        """Check that below the prefix only the record is left, without holders."""
        left = [entry["Key"] for entry in self.contenders()]
        assert not left, f"contender keys are left: {left}"
        entry = self.agent.kv_get(self.key)
        assert entry is None or (self.lock()["Holders"], entry["Flags"]) == ({}, FLAGS), f"{entry}"
