"""The model: a cluster of one server, on any clock.

The caller says what time it is, hands requests and events in, and fetches the answers that have become due.
The model does one thing at a time: a write is applied when it is handed in. A caller that wants Consul to
apply a write long after its client gave up must hand it in later.
"""

from dataclasses import dataclass, replace

from supervisor.rehearsal.devagent.api.call import (
    JSON,
    LEADER,
    Ask,
    NoLeader,
    Settings,
    as_json,
    refusal,
    text,
)
from supervisor.rehearsal.devagent.api.routes import respond
from supervisor.rehearsal.devagent.messages import AgentRequest, Answer, Headers, Waiting
from supervisor.rehearsal.devagent.queries import View, Watch, take_changes
from supervisor.rehearsal.devagent.store import NEVER, Store

JITTER_SHARE = 1 / 16  # a wait is longer by up to this, so that not all return at once
HOLD_S = 7.0  # rpc_hold_timeout: how long a request waits for a leader
NO_LEADER = "No cluster leader"
OF_FAILED = (("X-Consul-Index", "1"), ("X-Consul-Knownleader", "false"), ("X-Consul-Lastcontact", "0"))
RAW = ("Content-Type", "text/plain")


@dataclass(frozen=True, slots=True)
class _Pending:
    """One request that waits."""

    waiting: Waiting
    # The answer at the end of the wait. Of a read that is the result when the model last looked, because
    # Consul does not look again at the end.
    answer: Answer
    ask: Ask | None = None  # None: the request waits for a leader
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
        """The requests that wait, the oldest first."""
        return tuple(pending.waiting for pending in self._pending.values())

    def deadline(self) -> float:
        """Return when the time alone changes something, so that the caller must call ``advance``.

        The end of a lock-delay does not count, because it wakes no query.
        """
        waits = (pending.waiting.until for pending in self._pending.values())
        return min(self.store.deadline(), min(waits, default=NEVER))

    def handle(self, request: AgentRequest, now: float) -> Answer | Waiting:
        """Return the answer, or the promise of one. The request may have woken queries: see ``advance``."""
        self._run_to(now)
        answer = self._handle(request, now)
        self._wake()
        return answer

    def advance(self, now: float) -> list[tuple[Waiting, Answer]]:
        """Return every promise kept since the last call, up to and at ``now``, in order."""
        self._run_to(now)
        answered, self._answered = self._answered, []
        return answered

    def abandon(self, waiting: Waiting) -> None:
        """Forget a promise, because its client has gone."""
        self._pending.pop(waiting.number, None)
        self._answered = [kept for kept in self._answered if kept[0] != waiting]

    def restart(self, now: float) -> tuple[Waiting, ...]:
        """Play a server that was killed and is back with its data. Return the promises that it broke.

        The time of every session begins again, and so do the lock-delays of the log.
        """
        self._run_to(now)
        dropped = self.waiting
        self._pending.clear()
        self.store.delays.replay(now)
        self.store.sessions.renew_all(now)
        self.has_leader = True
        return dropped

    def lose_leader(self, now: float) -> None:
        """Leave the cluster without a leader: queries fail, requests wait, no session ends by time."""
        self._run_to(now)
        self.has_leader = False
        self.store.sessions.expiries.clear()
        for pending in tuple(self._pending.values()):
            if pending.ask is not None:
                self._finish(pending, text(500, "rpc error making call: EOF"))

    def elect_leader(self, now: float) -> None:
        """Give the cluster a leader: the time of every session begins again, lock-delays stay as they are."""
        self._run_to(now)
        self.has_leader = True
        self.store.sessions.renew_all(now)
        for pending in tuple(self._pending.values()):
            if pending.ask is None:
                self._retry(pending, now)
        self._wake()

    def change_leader(self, now: float) -> None:
        self.lose_leader(now)
        self.elect_leader(now)

    def join(self, node: str, now: float) -> None:
        self._run_to(now)
        self.store.join(node)
        self._wake()

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

    def _run_to(self, now: float) -> None:
        while (at := self.deadline()) <= now:
            self.store.expire(at)
            self._wake()
            for pending in tuple(self._pending.values()):
                if pending.waiting.until <= at:
                    self._finish(pending, pending.answer)

    def _handle(self, request: AgentRequest, now: float, number: int = 0) -> Answer | Waiting:
        try:
            response = respond(request, self.store, self.settings, now, self.has_leader)
        except NoLeader:
            return self._wait(_Pending(self._promise(request, now + HOLD_S, number), self._no_leader))
        if isinstance(response, Answer):
            return _with_headers(request, response)
        view = response.query(self.store)
        if not response.index or _index(view) > response.index:
            return _answer(view)
        jitter_s = self.store.source.random() * response.wait_s * JITTER_SHARE
        promise = self._promise(request, now + response.wait_s + jitter_s, number)
        return self._wait(_Pending(promise, _answer(view), response, view.watch))

    def _promise(self, request: AgentRequest, until: float, number: int) -> Waiting:
        if number == 0:
            number = self._number = self._number + 1
        return Waiting(number, request, until)

    def _wait(self, pending: _Pending) -> Waiting:
        self._pending[pending.waiting.number] = pending
        return pending.waiting

    def _wake(self) -> None:
        """Look at each query whose watch fires: answer it if its index has grown."""
        changes = take_changes(self.store)
        for pending in tuple(self._pending.values()):
            ask = pending.ask
            if ask is None or not pending.watch.fires(changes):
                continue
            view = ask.query(self.store)
            if _index(view) > ask.index:
                self._finish(pending, _answer(view))
            else:
                self._wait(replace(pending, answer=_answer(view), watch=view.watch))

    def _retry(self, pending: _Pending, now: float) -> None:
        """Handle a held request again; if the request waits again, it keeps its number."""
        del self._pending[pending.waiting.number]
        response = self._handle(pending.waiting.request, now, pending.waiting.number)
        if isinstance(response, Answer):
            self._answered.append((pending.waiting, response))

    def _finish(self, pending: _Pending, answer: Answer) -> None:
        del self._pending[pending.waiting.number]
        self._answered.append((pending.waiting, _with_headers(pending.waiting.request, answer)))


def _index(view: View) -> int:
    return max(1, view.index)


def _answer(view: View) -> Answer:
    headers: Headers = (("X-Consul-Index", str(_index(view))), *LEADER)
    if view.result is None:
        return Answer(404, headers=headers)
    if isinstance(view.result, bytes):
        return Answer(200, view.result, (RAW, *headers))
    return Answer(200, as_json(view.result), (JSON, *headers))


def _with_headers(request: AgentRequest, answer: Answer) -> Answer:
    """Return the answer with the headers of a query of sessions that failed, which other failures lack."""
    failed = answer.status == 500 and request.method == "GET" and request.target.startswith("/v1/session/")
    return replace(answer, headers=(*answer.headers, *OF_FAILED)) if failed else answer
