"""A round: many supervisors on one semaphore, and faults, all from one seed.

The seed decides the kind, the time and the node of each fault; the interleaving of the processes is the
machine's. The round reads the holders from Consul, never from the product.
"""

import base64
import json
import random
import signal
import time
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path

from supervisor.adapters.runtime.clock import boottime
from tests.consul.semaphores.scene import FLAGS, SlotScene
from tests.support.consul import Agent
from tests.support.supervisor import until
from tests.support.tenures import (
    KILLED,
    STARTED,
    beyond_limit,
    tenures,
    told_line,
    wrong_numbers,
    wrong_tokens,
)

NODES = 20
LIMIT = 5
TTL_S = 2
PRUNE_DELAY_S = 5
ROOM_S = 5 - 0.5 - 0.1 - 1.0  # prune_delay - margin - kill_after of on_acquire - on_lose
DOWN_MAX = 6
SETTLED_S = 3.0  # no fault hits a node this soon after its start, and none hits it twice within that time
PAUSE_S = (0.2, 1.0)  # from one fault to the next
SOON_S = (0.0, 0.5)  # a restart within the room, so that the tenure is adopted
LATER_S = (0.5, 3.0)
LONG_S = (6.0, 14.0)  # a restart when another node has the slot, or nearly


class Round(SlotScene):
    """One round.

    faults: how many faults of each kind were made.
    limits: from which index on which limit counts; a record that was deleted has that of the files.
    """

    limit: int = LIMIT

    def __init__(self, agent: Agent, folder: Path, name: str, seed: int, nodes: int = NODES) -> None:
        super().__init__(agent, folder, name)
        self.faults: Counter[str] = Counter()
        self.limits = [(0, LIMIT)]
        self._random = random.Random(seed)
        self._names = [f"n{number:02}" for number in range(nodes)]
        self._starts: Counter[str] = Counter()
        self._begun: set[str] = set()
        self._start_at: dict[str, float] = {}
        self._touched_at: dict[str, float] = {}
        self._kinds: dict[str, tuple[int, Callable[[], bool]]] = {
            "stop of a holder": (30, lambda: self._stop(self._a_holder())),
            "kill of a holder, back soon": (12, lambda: self._kill(self._a_holder(), SOON_S)),
            "kill of a holder, back late": (12, lambda: self._kill(self._a_holder(), LONG_S)),
            "stop of a waiter": (8, lambda: self._stop(self._a_waiter())),
            "kill of a waiter": (8, lambda: self._kill(self._a_waiter(), LATER_S)),
            "session of a holder destroyed": (8, lambda: self._destroy(self._a_holder())),
            "session of a waiter destroyed": (4, lambda: self._destroy(self._a_waiter())),
            "contender key of a holder deleted": (5, lambda: self._delete_key(self._a_holder())),
            "contender key of a waiter deleted": (3, lambda: self._delete_key(self._a_waiter())),
            ".lock deleted": (2, self._delete_lock),
            "limit changed": (5, self._change_limit),
        }

    # --- configuration ---------------------------------------------------------------------------

    def item(self, node: str, **changes: object) -> dict[str, object]:
        """Return an item whose adoptions run hooks, which the judge sees; two nodes have an on_change."""
        settings: dict[str, object] = {
            "session": {"ttl": f"{TTL_S}s"},
            "prune_delay": f"{PRUNE_DELAY_S}s",
            "on_adopt": "acquire",
        }
        if node not in self._names[:2]:
            settings["on_change"] = None
        return super().item(node, **{**settings, **changes})

    def config(
        self, items: Mapping[str, object], consul: Mapping[str, object] | None = None
    ) -> dict[str, object]:
        """Return a node's configuration with a short log, which costs twenty nodes little time."""
        return {**super().config(items, consul), "log": {"level": "info", "format": "json"}}

    # --- the round -------------------------------------------------------------------------------

    def play(self, seconds: float) -> None:
        """Make faults for this time, and start all nodes again."""
        for node in self._names:
            self._begins(node)
            self.node(node)
            time.sleep(0.1)
        self._all_there()
        end_at = boottime() + seconds
        while boottime() < end_at:
            until_at = boottime() + self._random.uniform(*PAUSE_S)
            self._make_fault()
            while boottime() < until_at:
                self._start_due()
                self._tell_starts()
                time.sleep(0.02)
        self._start_at = dict.fromkeys(self._start_at, 0.0)
        until(self._start_due, "all are started again")
        self._set_limit(LIMIT)
        self._all_there()

    def judge(self) -> None:
        """Check that no more nodes acted than the limit allowed, none with the number of another, and what is
        left in Consul.

        A killed node counts until its room is over. No clock decides which limit held for a slot, because the
        token is the index at which the slot was taken, and a change of the limit has one as well.
        """
        found = tenures(self.records(), self.name, ROOM_S)
        broken = [*beyond_limit(found, self.limits), *wrong_tokens(found, slots=True)]
        broken += wrong_numbers(found, LIMIT)
        begun = Counter(tenure.node for tenure in found)
        used = ", ".join(
            f"{n} of {slot}" for slot, n in sorted(Counter(each.slots[0] for each in found).items())
        )
        print(f"tenures by number: {used}")
        print(f"tenures: {len(found)}, of one supervisor {min(begun.values())} to {max(begun.values())}")
        if len(found) > 3 * len(self._names):
            broken += [f"{node} never held" for node in self.nodes if node not in begun]
        assert not broken, "\n".join(broken)
        self.judge_leftovers()

    def _begins(self, node: str) -> None:
        self._touched_at[node] = boottime()
        self._starts[node] += 1
        self._begun.add(node)

    def _tell_starts(self) -> None:
        """Tell of each process that has begun since and says now that it has started."""
        for node in sorted(filter(self._is_up, self._begun)):
            self._tell(STARTED, node)
            self._begun.remove(node)

    def _all_there(self) -> None:
        """Return when each node has logged its begin, and holds or waits with the only session of its name.

        A slot of a session that was destroyed stays taken for the prune delay, and a session whose creation
        had no answer lives for its TTL. Once all nodes have been stopped, nobody would remove either.
        """
        for node in self._names:
            until(lambda node=node: self._is_up(node), f"{node} is there", 60)  # type: ignore[misc]
        self._tell_starts()

        def settled() -> bool:
            holders, sessions = self.holders(), len(self.sessions())
            there = sorted(holders + self.line()) == self._names
            return there and (len(holders), sessions) == (LIMIT, len(self._names))

        until(settled, f"{LIMIT} hold, and the others wait", 60)

    def _start_due(self) -> bool:
        """Return whether all nodes that were due have been started."""
        due = [node for node, at in self._start_at.items() if boottime() >= at]
        for node in due:
            if self.nodes[node].running:
                continue  # the stop is not over
            del self._start_at[node]
            self._begins(node)
            self.nodes[node].start()
        return not self._start_at

    def _tell(self, stage: str, node: str) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        with self._records.open("a") as file:
            file.write(told_line(stage, node, boottime()))

    # --- faults ----------------------------------------------------------------------------------

    def _make_fault(self) -> None:
        self._tell_starts()  # before this process may be killed
        kinds = list(self._kinds)
        (kind,) = self._random.choices(kinds, [weight for weight, _ in self._kinds.values()])
        if self._kinds[kind][1]():
            self.faults[kind] += 1

    def _a_holder(self) -> str:
        """Return a holder that a fault may hit; None: there is none."""
        return self._choice(set(self.holders()))

    def _a_waiter(self) -> str:
        return self._choice(set(self._names) - set(self.holders()))

    def _choice(self, among: set[str]) -> str:
        now = boottime()
        ready = sorted(
            node
            for node in among & set(self._names)
            if node not in self._start_at and now - self._touched_at[node] >= SETTLED_S and self._is_up(node)
        )
        chosen = self._random.choice(ready) if ready else ""
        if chosen:
            self._touched_at[chosen] = now
        return chosen

    def _is_up(self, node: str) -> bool:
        """Return whether the newest process of this node has logged its start, which may take long."""
        return len(self.nodes[node].lines("started")) >= self._starts[node]

    def _stop(self, node: str) -> bool:
        if not node or len(self._start_at) >= DOWN_MAX:
            return False
        self.nodes[node].signal(signal.SIGTERM)
        self._start_at[node] = boottime() + self._random.uniform(*LATER_S)
        return True

    def _kill(self, node: str, back_s: tuple[float, float]) -> bool:
        if not node or len(self._start_at) >= DOWN_MAX:
            return False
        self.nodes[node].kill()
        self._tell(KILLED, node)
        self._start_at[node] = boottime() + self._random.uniform(*back_s)
        return True

    def _destroy(self, node: str) -> bool:
        session = self.session_of(node) if node else ""
        if session:
            self.agent.session_destroy(session)
        return bool(session)

    def _delete_key(self, node: str) -> bool:
        session = self.session_of(node) if node else ""
        if session:
            self.agent.kv_delete(f"{self.name}/{session}")
        return bool(session)

    def _delete_lock(self) -> bool:
        """Delete ``.lock`` with a check of its index, so that no other write lies between."""
        entry = self.agent.kv_get(self.key)
        if entry is None:
            return False
        index = int(entry["ModifyIndex"])
        answer = self.agent.call("DELETE", f"/kv/{self.key}", query={"cas": index})
        deleted = answer.status == 200 and answer.json() is True
        if deleted:
            self.limits.append((index, LIMIT))
        return deleted

    def _change_limit(self) -> bool:
        return self._set_limit(self._random.randint(1, LIMIT + 2))

    def _set_limit(self, limit: int) -> bool:
        """Set the limit as the command does; the transaction returns the index."""
        for _ in range(20):
            entry = self.agent.kv_get(self.key)
            if entry is None:
                return False
            content = json.dumps({**json.loads(entry["Value"]), "Limit": limit}).encode()
            write = {
                "Verb": "cas", "Key": self.key, "Flags": FLAGS, "Index": entry["ModifyIndex"],
                "Value": base64.b64encode(content).decode(),
            }  # fmt: skip
            answer = self.agent.txn([{"KV": write}])
            if answer.status == 200:
                # No file allows more than its own limit.
                self.limits.append((int(answer.json()["Results"][0]["KV"]["ModifyIndex"]), min(limit, LIMIT)))
                return True
        return False
