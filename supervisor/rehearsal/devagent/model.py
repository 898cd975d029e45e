"""The model: a cluster of one server, on any clock.

The caller says what time it is, hands requests in, and fetches the answers that have become due. The model
does one thing at a time: a write is applied when it is handed in. A caller that wants Consul to apply a write
long after its client gave up must hand it in later.
"""

from dataclasses import dataclass

from supervisor.rehearsal.devagent.api.call import JSON, LEADER, Ask, Settings, as_json
from supervisor.rehearsal.devagent.api.routes import respond
from supervisor.rehearsal.devagent.queries import View
from supervisor.rehearsal.devagent.store import Store
from supervisor.reporting.http_server import HttpAnswer, HttpRequest

JITTER_SHARE = 1 / 16  # a wait is longer by up to this, so that not all return at once
RAW = ("Content-Type", "text/plain")


@dataclass(slots=True, eq=False)
class Waiting:
    """A request that waits: the promise of an answer, which ``Model.advance`` returns later."""

    number: int  # grows in the order of the requests
    request: HttpRequest
    until: float  # the latest moment of the answer
    ask: Ask
    view: View  # the result at its begin
    answer: HttpAnswer | None = None  # at the end of the wait. None: what is true then


class Model:
    """A cluster of one server, seen through the agent of each of its nodes."""

    def __init__(self, settings: Settings | None = None) -> None:
        self.settings = settings or Settings()
        self.store = Store(self.settings.node, self.settings.seed)
        self.waiting: dict[int, Waiting] = {}  # the requests that wait by their number, the oldest first
        self._answered: list[tuple[Waiting, HttpAnswer]] = []
        self._number = 0
        self._looked_at = 0  # the index of the store when the queries were last looked at

    def deadline(self) -> float:
        """Return when the time alone changes something, so that the caller must call ``advance``.

        The end of a lock-delay does not count, because it wakes no query.
        """
        return min([self.store.deadline(), *(waiting.until for waiting in self.waiting.values())])

    def handle(self, request: HttpRequest, now: float, node: str = "") -> HttpAnswer | Waiting:
        """Return the answer, or the promise of one. The request may have woken queries: see ``advance``.

        node: the node whose agent receives the request. Blank: the cluster's first node.
        """
        self._run_to(now)
        answer = self._handle(request, node or self.settings.node, now)
        self._wake()
        return answer

    def advance(self, now: float) -> list[tuple[Waiting, HttpAnswer]]:
        """Return every promise kept since the last call, up to and at ``now``, in order."""
        self._run_to(now)
        answered, self._answered = self._answered, []
        return answered

    def abandon(self, waiting: Waiting) -> None:
        """Forget a promise, because its client has gone."""
        self.waiting.pop(waiting.number, None)
        self._answered = [kept for kept in self._answered if kept[0].number != waiting.number]

    def join(self, node: str, now: float) -> None:
        self._run_to(now)
        self.store.join(node)
        self._wake()

    def _run_to(self, now: float) -> None:
        while (at := self.deadline()) <= now:
            self.store.expire(at)
            self._wake()
            for waiting in tuple(self.waiting.values()):
                if waiting.until <= at:
                    self._finish(waiting, waiting.answer or _answer(waiting.ask.query(self.store)))

    def _handle(self, request: HttpRequest, node: str, now: float) -> HttpAnswer | Waiting:
        response = respond(request, node, self.store, self.settings, now)
        if isinstance(response, HttpAnswer):
            return response
        view = response.query(self.store)
        if not response.index or _index(view) > response.index:
            return _answer(view)
        jitter_s = self.store.source.random() * response.wait_s * JITTER_SHARE
        return self._wait(request, now + response.wait_s + jitter_s, response, view)

    def _wait(
        self, request: HttpRequest, until: float, ask: Ask, view: View, answer: HttpAnswer | None = None
    ) -> Waiting:
        self._number += 1
        waiting = self.waiting[self._number] = Waiting(self._number, request, until, ask, view, answer)
        return waiting

    def _wake(self) -> None:
        """Answer each query whose result has changed, if its index has grown."""
        if self._looked_at == self.store.index:
            return
        self._looked_at = self.store.index
        for waiting in tuple(self.waiting.values()):
            view = waiting.ask.query(self.store)
            if view.result != waiting.view.result and _index(view) > waiting.ask.index:
                self._finish(waiting, _answer(view))

    def _finish(self, waiting: Waiting, answer: HttpAnswer) -> None:
        del self.waiting[waiting.number]
        self._answered.append((waiting, answer))


def _index(view: View) -> int:
    return max(1, view.index)


def _answer(view: View) -> HttpAnswer:
    headers = (("X-Consul-Index", str(_index(view))), *LEADER)
    if view.result is None:
        return HttpAnswer(404, headers=headers)
    if isinstance(view.result, bytes):
        return HttpAnswer(200, view.result, (RAW, *headers))
    return HttpAnswer(200, as_json(view.result), (JSON, *headers))
