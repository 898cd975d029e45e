"""The embedded agent's model with what befalls a real cluster: restarts, changes of leader, lost nodes.

No user of the embedded agent can cause these events, so the product does not have them.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace

from supervisor.rehearsal.devagent.api.call import Ask, Settings, refusal, text
from supervisor.rehearsal.devagent.kv import Rejected
from supervisor.rehearsal.devagent.model import Model, Waiting
from supervisor.rehearsal.devagent.queries import View
from supervisor.rehearsal.devagent.sessions import SERF_HEALTH, StoredSession
from supervisor.rehearsal.devagent.store import Store, Written
from supervisor.reporting.http_server import HttpAnswer, HttpRequest

TOMBSTONE_S = 900.0  # tombstone_ttl
HOLD_S = 7.0  # rpc_hold_timeout: how long a request waits for a leader
NO_LEADER = "No cluster leader"
OF_SERVERS = ("/v1/kv", "/v1/session", "/v1/txn")
SNAPSHOT_ENTRIES = 16384  # raft_snapshot_threshold: what a snapshot holds is not replayed
NEVER = float("-inf")


@dataclass(slots=True)
class LockDelays:
    """The delays of all keys, as the leading server keeps them in memory, by its own clock.

    A restarted server replays its raft log and starts each delay of the log again; and each delay removes, at
    its own end, whatever delay the key has at that moment. So after a restart an old, short delay can cut a
    new, long one short.
    """

    ends: dict[str, list[float]] = field(default_factory=dict)
    log: list[tuple[int, str, float]] = field(default_factory=list)

    def start(self, key: str, delay_s: float, now: float, index: int) -> None:
        """Start a delay, because the raft entry ``index`` has taken the key's lock away."""
        self.log = [logged for logged in self.log if logged[0] > index - SNAPSHOT_ENTRIES]
        self.log.append((index, key, delay_s))
        self._run(key, delay_s, now)

    def holds(self, key: str, now: float) -> bool:
        return now < min(self.ends.get(key, ()), default=NEVER)

    def replay(self, now: float) -> None:
        """Forget all delays, as a restarted server does, and start those of the log again."""
        self.ends.clear()
        for _, key, delay_s in self.log:
            self._run(key, delay_s, now)

    def _run(self, key: str, delay_s: float, now: float) -> None:
        pending = [end for end in self.ends.get(key, ()) if end > now]
        self.ends[key] = [*pending, now + delay_s]


class FaultyStore(Store):
    """The store of a cluster whose nodes may be lost, and whose server may be restarted.

    It forgets tombstones after TOMBSTONE_S, so that the index of a list may go backwards.
    """

    def __init__(self, node: str, seed: int) -> None:
        super().__init__(node, seed)
        self.logged = LockDelays()
        self.dead: set[str] = set()  # the nodes whose serfHealth is critical
        self.reapings: list[tuple[float, int]] = []

    def deadline(self) -> float:
        return min([super().deadline(), *(at for at, _ in self.reapings)])

    def expire(self, now: float) -> None:
        super().expire(now)
        for at, index in tuple(self.reapings):
            if at <= now:
                self.reapings.remove((at, index))
                self._commit()
                kept = {key: made for key, made in self.kv.tombstones.items() if made > index}
                self.kv.tombstones = kept

    def write(self, write: Callable[[int], Written], now: float) -> Written:
        written = super().write(write, now)
        self._bury(now)
        return written

    def _end_sessions(self, sessions: Iterable[StoredSession], now: float) -> None:
        super()._end_sessions(sessions, now)
        self._bury(now)

    def _bury(self, now: float) -> None:
        """Plan when the tombstones of the newest write are forgotten."""
        if self.index in self.kv.tombstones.values():
            self.reapings.append((now + TOMBSTONE_S, self.index))

    def is_delayed(self, key: str, now: float) -> bool:
        return self.logged.holds(key, now)

    def delay(self, key: str, delay_s: float, now: float) -> None:
        self.logged.start(key, delay_s, now, self.index)

    def create_session(self, wanted: StoredSession, now: float) -> StoredSession:
        if wanted.node in self.dead and SERF_HEALTH in wanted.checks:
            self._commit()
            raise Rejected(f"Check '{SERF_HEALTH}' is in critical state")
        return super().create_session(wanted, now)

    def leave(self, name: str, now: float) -> None:
        """Remove a node and end all its sessions, whatever their checks."""
        self.nodes.remove(name)
        self.dead.discard(name)
        self._end_sessions(self._of_node(name), now)

    def set_alive(self, name: str, alive: bool, now: float) -> None:
        """Change a node's serfHealth; a critical one ends the sessions bound to it."""
        if name not in self.nodes or alive == (name not in self.dead):
            return
        self.dead ^= {name}
        bound = [] if alive else [each for each in self._of_node(name) if SERF_HEALTH in each.checks]
        self._end_sessions(bound, now)

    def _of_node(self, name: str) -> list[StoredSession]:
        return [session for session in self.sessions.sorted() if session.node == name]

    def renew_all(self, now: float) -> None:
        """Start the time of all sessions again, because a new leader does not know how much has passed."""
        for session in self.sessions.table.values():
            self.sessions.renew(session, now)


class FaultyModel(Model):
    """A cluster of one server, with the events of a real one."""

    store: FaultyStore

    def __init__(self, settings: Settings | None = None) -> None:
        super().__init__(settings)
        self.store = FaultyStore(self.settings.node, self.settings.seed)
        self.has_leader = True
        self._no_leader = refusal(self.settings, NO_LEADER)
        self._held: dict[int, str] = {}  # the node of each request that waits for a leader

    def restart(self, now: float) -> tuple[Waiting, ...]:
        """Play a server that was killed and is back with its data. Return the promises that it broke.

        The time of every session begins again, and so do the lock-delays of the log.
        """
        self._run_to(now)
        dropped = tuple(self.waiting.values())
        self.waiting.clear()
        self._held.clear()
        self.store.logged.replay(now)
        self.store.renew_all(now)
        self.has_leader = True
        return dropped

    def lose_leader(self, now: float) -> None:
        """Leave the cluster without a leader: queries fail, requests wait, no session ends by time."""
        self._run_to(now)
        self.has_leader = False
        self.store.sessions.expiries.clear()
        for waiting in tuple(self.waiting.values()):
            if waiting.number not in self._held:
                self._finish(waiting, text(500, "rpc error making call: EOF"))

    def elect_leader(self, now: float) -> None:
        """Give the cluster a leader: the time of every session begins again, lock-delays stay as they are."""
        self._run_to(now)
        self.has_leader = True
        self.store.renew_all(now)
        held, self._held = self._held, {}
        for number, node in held.items():
            if number in self.waiting:
                self._retry(self.waiting.pop(number), node, now)
        self._wake()

    def change_leader(self, now: float) -> None:
        self.lose_leader(now)
        self.elect_leader(now)

    def fail(self, node: str, now: float) -> None:
        """Let the cluster notice that a node's agent is dead: its serfHealth turns critical."""
        self._run_to(now)
        self.store.set_alive(node, False, now)
        self._wake()

    def recover(self, node: str, now: float) -> None:
        """Let the cluster notice that a node's agent is alive again."""
        self._run_to(now)
        self.store.set_alive(node, True, now)
        self._wake()

    def leave(self, node: str, now: float) -> None:
        """Let a node's agent leave in order: the node is gone, and so are all its sessions."""
        self._run_to(now)
        self.store.leave(node, now)
        self._wake()

    def _handle(self, request: HttpRequest, node: str, now: float) -> HttpAnswer | Waiting:
        if self.has_leader or not request.target.startswith(OF_SERVERS):
            return super()._handle(request, node, now)
        nothing = View(0, None)
        ask = Ask(lambda store: nothing, 0, HOLD_S)
        waiting = self._wait(request, now + HOLD_S, ask, nothing, self._no_leader)
        self._held[waiting.number] = node
        return waiting

    def _retry(self, held: Waiting, node: str, now: float) -> None:
        """Handle a held request again; if the request waits again, it keeps its number."""
        response = self._handle(held.request, node, now)
        if isinstance(response, HttpAnswer):
            self._answered.append((held, response))
            return
        del self.waiting[response.number]
        self.waiting[held.number] = replace(response, number=held.number)
