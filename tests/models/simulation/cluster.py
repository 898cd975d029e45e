"""Consul: the embedded agent's model on virtual time, with a witness of its holders.

The model answers a request at once. Requests that come late, twice or never are made by the network.
"""

from collections.abc import Callable

from supervisor.rehearsal.devagent.api.call import Settings
from supervisor.rehearsal.devagent.model import Waiting
from supervisor.rehearsal.devagent.store import NEVER
from supervisor.reporting.http_server import HttpAnswer, HttpRequest
from tests.models.simulation.holders import OfKey, OfSlots, Witness
from tests.models.simulation.schedule import Schedule
from tests.models.simulation.trace import Trace
from tests.support.faulty_consul import FaultyModel

GARBLED_S = 0.2  # a server that has just restarted leads before it has applied its log
DOWN = HttpAnswer(500, b"rpc error getting client: failed to get conn: connection refused")
NOT_FOUND_YET = "Session id '{}' not found"

Reply = Callable[[HttpAnswer | None], None]  # None: the connection broke


class Cluster:
    """One Consul for all nodes, which take part in an item of this ``kind``.

    witness: the witness of that item.
    slots: the witness of a semaphore. None: the item is an election.
    """

    def __init__(
        self, seed: int, nodes: tuple[str, ...], schedule: Schedule, trace: Trace, kind: str
    ) -> None:
        self.model = FaultyModel(Settings(node=nodes[0], session_ttl_min_s=0.5, seed=seed))
        for node in nodes[1:]:
            self.model.join(node, 0.0)
        self.slots = OfSlots(self.model.store, self.note) if kind == "semaphore" else None
        self.witness: Witness = self.slots or OfKey(self.model.store, self.note)
        self._schedule = schedule
        self._trace = trace
        self._replies: dict[int, Reply] = {}
        self._timer = NEVER
        self._down_until = -NEVER
        self._restarted_at = -NEVER

    # --- requests --------------------------------------------------------------------------------

    def ask(self, request: HttpRequest, reply: Reply, node: str) -> Waiting | None:
        """Send a request to the agent of this node.

        ``reply`` is called once, perhaps at once; a waiting request may be abandoned.
        """
        now = self._schedule.now
        if now < self._down_until:
            reply(DOWN)
            return None
        if now < self._restarted_at + GARBLED_S and "/session/renew/" in request.target:
            session = request.target.rpartition("/")[2]
            reply(HttpAnswer(404, NOT_FOUND_YET.format(session).encode()))
            return None
        answer = self.model.handle(request, now, node)
        if isinstance(answer, Waiting):
            self._replies[answer.number] = reply
            self._settle()
            return answer
        self._settle()
        reply(answer)
        return None

    def abandon(self, waiting: Waiting) -> None:
        """Drop a request that waits, because its client has gone."""
        if self._replies.pop(waiting.number, None) is not None:
            self.model.abandon(waiting)

    def _settle(self, *, several: bool = False) -> None:
        """Answer the requests that are due, let the witness look, and set the next time of a change."""
        now = self._schedule.now
        for waiting, answer in self.model.advance(now):
            reply = self._replies.pop(waiting.number, None)
            if reply is not None:
                reply(answer)
        self.witness.look(now, several=several)
        deadline = self.model.deadline()
        if deadline < self._timer:
            self._timer = deadline
            self._schedule.at(deadline, self._tick)

    def _tick(self) -> None:
        self._timer = NEVER
        self._settle()

    # --- events ----------------------------------------------------------------------------------

    def change_leader(self) -> None:
        """Let another server lead at once, so that every session's TTL begins again."""
        self.model.change_leader(self._schedule.now)
        self._settle(several=True)

    def lose_leader(self) -> None:
        """Leave the cluster without a leader until ``elect_leader``."""
        self.model.lose_leader(self._schedule.now)
        self._settle()

    def elect_leader(self) -> None:
        self.model.elect_leader(self._schedule.now)
        self._settle(several=True)

    def restart(self, down_s: float) -> None:
        """Kill the server, and start it with its data after this time."""
        self._down_until = self._schedule.now + down_s
        self.model.lose_leader(self._schedule.now)
        self._settle()
        self._schedule.at(self._down_until, self._restarted)

    def _restarted(self) -> None:
        now = self._restarted_at = self._schedule.now
        self.witness.restarted(now)
        for waiting in self.model.restart(now):
            reply = self._replies.pop(waiting.number, None)
            if reply is not None:
                reply(None)
        self._settle()

    def node_fails(self, node: str) -> None:
        """Let Consul notice that the node's agent is dead."""
        self.model.fail(node, self._schedule.now)
        self._settle()

    def node_recovers(self, node: str) -> None:
        """Let Consul notice that the node's agent is alive."""
        self.model.recover(node, self._schedule.now)
        self._settle()

    def node_leaves(self, node: str) -> None:
        """Let the node's agent leave in order, and be back at once."""
        self.model.leave(node, self._schedule.now)
        self.model.join(node, self._schedule.now)
        self._settle()

    def operator(self, method: str, target: str, body: bytes = b"") -> None:
        """Send an operator's own request, which gets through whenever Consul can answer."""
        if self._schedule.now >= self._down_until and self.model.has_leader:
            self.model.handle(HttpRequest(method, target, (), body), self._schedule.now)
            self._settle()

    def note(self, words: str) -> None:
        self._trace.note(self._schedule.now, "consul", words)
