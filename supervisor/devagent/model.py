"""The model: requests in, answers out, on any clock.

It holds the store and everybody who waits. The caller says what time it is, hands in requests and
events, and asks for the answers that have become due; the same calls at the same times give the same
answers, ids and waits included. No I/O, no clock; randomness only from a seed.

It cannot do two things at once: a step is over before the next, so a write is applied when it is
handed in. That Consul may apply one long after its client gave up is for the caller to play.
"""

from dataclasses import dataclass, replace

from supervisor.devagent.api import Ask, NoLeader, Settings, respond
from supervisor.devagent.api.call import JSON, refusal, text
from supervisor.devagent.catalog import CRITICAL, PASSING, SERF_HEALTH
from supervisor.devagent.gotext import dump_json
from supervisor.devagent.messages import Answer, Headers, Request, Waiting
from supervisor.devagent.queries import Watch, take_changes
from supervisor.devagent.store import NEVER, Store

JITTER_SHARE = 1 / 16  # a wait is longer by up to this, so that not all return at once
HOLD_S = 7.0  # rpc_hold_timeout: a request that finds no leader is kept for one
NO_LEADER = "No cluster leader"
RAW: Headers = (
    ("Content-Type", "text/plain"),
    ("Content-Security-Policy", "sandbox"),
    ("X-Content-Type-Options", "nosniff"),
)


@dataclass(frozen=True, slots=True)
class _Pending:
    """One who waits; ``ask`` None: for a leader. ``answer`` is what the end of the wait brings.

    For a read that is what it found when it last looked: it does not look again at the end.
    """

    waiting: Waiting
    answer: Answer
    ask: Ask | None = None
    watch: Watch = Watch()


class Model:
    """A cluster of one server, seen through the agent of each of its nodes."""

    def __init__(self, settings: Settings | None = None) -> None:
        self.settings = settings or Settings()
        self.store = Store(self.settings.node, self.settings.seed)
        self._no_leader = refusal(self.settings, NO_LEADER)
        self.has_leader = True
        self._pending: dict[int, _Pending] = {}
        self._answered: list[tuple[Waiting, Answer]] = []
        self._number = 0

    @property
    def waiting(self) -> tuple[Waiting, ...]:
        """Who waits, the longest first."""
        return tuple(pending.waiting for pending in self._pending.values())

    def deadline(self) -> float:
        """When the time alone changes something; ``advance`` is wanted then. No lock-delay is: its
        end wakes nobody, and only the next try of a lock meets it."""
        waits = (pending.waiting.until for pending in self._pending.values())
        return min(self.store.deadline(), min(waits, default=NEVER))

    # --- requests --------------------------------------------------------------------------------

    def handle(self, request: Request, now: float) -> Answer | Waiting:
        """The answer, or the promise of one. Others may have been woken: see ``advance``."""
        self._run_to(now)
        answer = self._handle(request, now)
        self._wake()
        return answer

    def advance(self, now: float) -> list[tuple[Waiting, Answer]]:
        """Every promise that was kept since the last call, up to and at ``now``, in order."""
        self._run_to(now)
        answered, self._answered = self._answered, []
        return answered

    def abandon(self, waiting: Waiting) -> None:
        """Nobody wants that answer any more."""
        self._pending.pop(waiting.number, None)
        self._answered = [kept for kept in self._answered if kept[0] != waiting]

    # --- events ----------------------------------------------------------------------------------

    def restart(self, now: float) -> tuple[Waiting, ...]:
        """The server was killed and has come back with its data: who was waiting gets no answer.

        The time of every session begins again, and the lock-delays of its log run again.
        """
        self._run_to(now)
        dropped = self.waiting
        self._pending.clear()
        self.store.delays.replay(now)
        self.store.sessions.renew_all(now)
        self.has_leader = True
        return dropped

    def lose_leader(self, now: float) -> None:
        """No server leads: queries that wait fail, requests are held, no session ends by time."""
        self._run_to(now)
        self.has_leader = False
        self.store.sessions.expiries.clear()
        for pending in tuple(self._pending.values()):
            if pending.ask is not None and not pending.ask.stale:
                self._finish(pending, text(500, "rpc error making call: EOF"))

    def elect_leader(self, now: float) -> None:
        """A server leads: the time of every session begins again; lock-delays are as they were."""
        self._run_to(now)
        self.has_leader = True
        self.store.sessions.renew_all(now)
        for pending in tuple(self._pending.values()):
            if pending.ask is None and pending.waiting.number in self._pending:
                self._retry(pending, now)
        self._wake()

    def change_leader(self, now: float) -> None:
        """One server stops leading, another leads at once."""
        self.lose_leader(now)
        self.elect_leader(now)

    def join(self, node: str, now: float) -> None:
        """A node's agent has joined."""
        self._run_to(now)
        self.store.join(node)
        self._wake()

    def fail(self, node: str, now: float) -> None:
        """A node's agent is noticed to be dead: serfHealth turns critical, its sessions end."""
        self._set_serf(node, CRITICAL, "Agent not live or unreachable", now)

    def recover(self, node: str, now: float) -> None:
        """A node's agent is noticed to be alive again."""
        self._set_serf(node, PASSING, "Agent alive and reachable", now)

    def leave(self, node: str, now: float) -> None:
        """A node's agent has left in order: the node is gone, and all its sessions."""
        self._run_to(now)
        self.store.leave(node, now)
        self._wake()

    def _set_serf(self, node: str, status: str, output: str, now: float) -> None:
        self._run_to(now)
        self.store.set_check(node, SERF_HEALTH, status, output, now)
        self._wake()

    # --- who waits -------------------------------------------------------------------------------

    def _run_to(self, now: float) -> None:
        while (at := self.deadline()) <= now:
            self.store.expire(at)
            self._wake()
            for pending in tuple(self._pending.values()):
                if pending.waiting.until <= at:
                    self._finish(pending, pending.answer)

    def _handle(self, request: Request, now: float) -> Answer | Waiting:
        try:
            response = respond(request, self.store, self.settings, now, self.has_leader)
        except NoLeader:
            return self._wait(_Pending(self._promise(request, now + HOLD_S), self._no_leader))
        if isinstance(response, Answer):
            return response
        if response.index and self._index(response) <= response.index:
            jitter_s = self.store.source.random() * response.wait_s * JITTER_SHARE
            promise = self._promise(request, now + response.wait_s + jitter_s)
            return self._wait(self._look(_Pending(promise, self._no_leader, response)))
        return self._result(response)

    def _promise(self, request: Request, until: float) -> Waiting:
        self._number += 1
        return Waiting(self._number, request, until)

    def _wait(self, pending: _Pending) -> Waiting:
        self._pending[pending.waiting.number] = pending
        return pending.waiting

    def _look(self, pending: _Pending) -> _Pending:
        """What it finds now, and what would change that."""
        assert pending.ask is not None, "it reads"
        watch = pending.ask.query.watch(self.store)
        return replace(pending, answer=self._result(pending.ask), watch=watch)

    def _wake(self) -> None:
        """Whose watch was touched looks again: it is answered if the index has grown."""
        changes = take_changes(self.store)
        for pending in tuple(self._pending.values()):
            ask = pending.ask
            if ask is None or not pending.watch.fires(changes):
                continue
            if self._index(ask) > ask.index:
                self._finish(pending, self._result(ask))
            else:
                self._wait(self._look(pending))

    def _retry(self, pending: _Pending, now: float) -> None:
        """A held request begins anew; if it waits again, then under its old number."""
        del self._pending[pending.waiting.number]
        response = self._handle(pending.waiting.request, now)
        if isinstance(response, Answer):
            self._answered.append((pending.waiting, response))
            return
        begun = self._pending.pop(response.number)
        self._pending[pending.waiting.number] = replace(
            begun, waiting=replace(pending.waiting, until=response.until)
        )

    def _finish(self, pending: _Pending, answer: Answer) -> None:
        del self._pending[pending.waiting.number]
        self._answered.append((pending.waiting, answer))

    def _index(self, ask: Ask) -> int:
        return max(1, ask.query.index(self.store))

    def _result(self, ask: Ask) -> Answer:
        result = ask.query.result(self.store)
        known = "true" if self.has_leader else "false"
        headers: Headers = (
            ("X-Consul-Index", str(self._index(ask))),
            ("X-Consul-Knownleader", known),
            ("X-Consul-Lastcontact", "0"),
        )
        if result is None:
            return Answer(404, headers=headers)
        if isinstance(result, bytes):
            return Answer(200, result, (*RAW, *headers))
        return Answer(200, dump_json(result, ask.pretty), (JSON, *headers))
