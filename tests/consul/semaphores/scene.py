"""A scene of semaphores: some supervisors on one prefix, and what an operator may do to it by hand.

``end`` judges more than that of elections: never more than ``limit`` act at once, and below the
prefix nothing is left but ``.lock``, with nobody in it.
"""

import json
from typing import Any, ClassVar

from tests.consul.elections.scene import LOCK_DELAY, LOCK_DELAY_S, ROOM_S, Scene
from tests.support.supervisor import PATIENCE_S, Supervisor, until
from tests.support.tenures import Record, shown

FLAGS = 16210313421097356768  # api.SemaphoreFlagValue
PRUNE_DELAY = LOCK_DELAY
PRUNE_DELAY_S = LOCK_DELAY_S
TICK_S = 0.02  # what /proc/uptime cuts off, at both ends

__all__ = ["FLAGS", "PRUNE_DELAY", "PRUNE_DELAY_S", "ROOM_S", "TICK_S", "SlotScene"]


class SlotScene(Scene):
    """``name`` is the semaphore's and its prefix; ``limit`` is that of the files, and of the judge."""

    section: ClassVar[str] = "semaphores"
    key_suffix: ClassVar[str] = "/.lock"
    limit: int = 3
    leaves = False  # something is left below the prefix, and the test says what

    def item(self, node: str, **changes: object) -> dict[str, object]:
        """A semaphore whose hooks do nothing but record."""
        place = {"prefix": self.name, "limit": self.limit, "prune_delay": self.terms["lock_delay"]}
        return self._recording(node, place, changes)

    # --- nodes -----------------------------------------------------------------------------------

    def holder(self, node: str, **how: Any) -> Supervisor:
        """Start a node for which there is a slot, and return when it has it."""
        return self.leader(node, **how)

    def waiter(self, node: str, **how: Any) -> Supervisor:
        """Start a node for which there is none, and return when it stands in line."""
        supervisor = self.node(node, **how)
        until(lambda: node in self.line(), f"{node} in line\n{supervisor.log_tail()}")
        return supervisor

    def full(self, **changes: Any) -> list[Supervisor]:
        """a, b and c have the slots, d waits."""
        return [*(self.holder(node, **changes) for node in "abc"), self.waiter("d", **changes)]

    # --- what Consul says ------------------------------------------------------------------------

    def lock(self) -> dict[str, Any]:
        """What ``.lock`` holds, as it is; empty when it is absent."""
        entry = self.agent.kv_get(self.key)
        content: dict[str, Any] = json.loads(entry["Value"]) if entry is not None else {}
        return content

    def holders(self) -> list[str]:
        """The nodes that ``.lock`` names, in its order."""
        node_of = self._node_of()
        return [node_of.get(session, session) for session in self.lock().get("Holders") or ()]

    def line(self) -> list[str]:
        """The nodes with a contender key that lives and without a slot, who came first first."""
        node_of, holders = self._node_of(), self.lock().get("Holders") or ()
        keys = sorted(self.contenders(), key=lambda entry: int(entry["CreateIndex"]))
        waiting = [entry["Session"] for entry in keys if entry["Session"] not in holders]
        return [node_of[session] for session in waiting if session in node_of]

    def contenders(self) -> list[dict[str, Any]]:
        """The contender keys."""
        return [entry for entry in self.agent.kv_list(f"{self.name}/") if entry["Key"] != self.key]

    def contender_key(self, node: str) -> str:
        """The name of this node's contender key."""
        return f"{self.name}/{self.session_of(node)}"

    def wait_gone(self, key: str, within_s: float = PATIENCE_S) -> None:
        """Return when this key is absent."""
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
        """The begin of that node's first on_acquire."""
        return self.wait(node=node, event="acquire", stage="begin")

    def told_holders(self, node: str) -> list[tuple[str, list[str]]]:
        """What on_change was told on this node: reason, and whose slots."""
        told = self.records(node=node, stage="begin", event="change")
        return [(r.reason, sorted(each["value"]["Value"] for each in json.loads(r.holders))) for r in told]

    def _node_of(self) -> dict[str, str]:
        names = ((each["ID"], each["Name"].removeprefix(f"{self.name}-")) for each in self.sessions())
        return dict(names)

    # --- an operator's hand ----------------------------------------------------------------------

    def edit(self, **fields: object) -> int:
        """Write ``.lock`` with other fields, by check-and-set as a careful operator does; its index."""
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

    def delete_all(self) -> None:
        """As ``consul kv delete -recurse`` does."""
        assert self.agent.call("DELETE", f"/kv/{self.name}/?recurse").status == 200

    # --- the end ---------------------------------------------------------------------------------

    def judge(self) -> None:
        """Of the hooks, and of what is left below the prefix."""
        super().judge()
        if not self.leaves and not self._excused:
            self.judge_leftovers()

    def judge_leftovers(self) -> None:
        """Below the prefix nothing is left but the record, with nobody in it."""
        left = [entry["Key"] for entry in self.contenders()]
        assert not left, f"contender keys are left: {left}"
        entry = self.agent.kv_get(self.key)
        assert entry is None or (self.lock()["Holders"], entry["Flags"]) == ({}, FLAGS), f"{entry}"
