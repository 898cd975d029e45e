"""The way of a request to Consul and back: the real encoder and decoder, and everything between.

A supervisor uses its own machine's agent, and the agent uses the servers. The conditions of the machine
decide what is lost, late or doubled on the way.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from typing import TYPE_CHECKING

import requests

from supervisor.adapters.consul.codec import Codec
from supervisor.core.outcomes import Outcome, Unknown
from supervisor.core.requests import CreateSession, Request, Write
from supervisor.rehearsal.devagent.model import Waiting
from supervisor.reporting.http_server import HttpAnswer
from supervisor.reporting.http_server import HttpRequest as Sent
from tests.models.simulation.cluster import Cluster, Reply
from tests.models.simulation.disk import CONSUL
from tests.models.simulation.schedule import Schedule

if TYPE_CHECKING:
    from tests.models.simulation.machine import Machine

WAY_S = (0.0002, 0.002)
DELAY_S = (0.0, 2.5)
LATE_S = (0.5, 8.0)
SLOW_AGENT_S = (0.2, 1.5)
AGAIN_AFTER_S = (0.05, 5.0)
LOSSY_SHARE = 0.35


class Exchange:
    """One request on its way. ``finished`` is called once, with the outcome."""

    def __init__(
        self, network: Network, consul: Codec, request: Request, finished: Callable[[Outcome], None]
    ) -> None:
        self.request = request
        self.consul = consul
        self.over = False
        self._network = network
        self._finished = finished
        self._waiting: Waiting | None = None

    def finish(self, outcome: Outcome) -> None:
        """End the exchange for the supervisor. Messages on their way go on."""
        if self.over:
            return
        self.over = True
        if self._waiting is not None:
            self._network.cluster.abandon(self._waiting)
        self._finished(outcome)

    def drop(self) -> None:
        """Drop an exchange of a supervisor that is gone; messages on their way arrive."""
        self.over = True
        if self._waiting is not None:
            self._network.cluster.abandon(self._waiting)

    def arrive(self, sent: Sent) -> None:
        self._waiting = self._network.ask(sent, self.answered)

    def answered(self, answer: HttpAnswer | None) -> None:
        """Receive the servers' response; None: the connection broke."""
        self._waiting = None
        self._network.carry_back(self, answer)


class Network:
    """The network of one machine, from its supervisor to the servers."""

    def __init__(self, machine: Machine, cluster: Cluster, dice: random.Random, schedule: Schedule) -> None:
        self.cluster = cluster
        self._machine = machine
        self._dice = dice
        self._schedule = schedule
        self._exchanges: list[Exchange] = []

    def send(
        self, consul: Codec, request: Request, timeout_s: float, finished: Callable[[Outcome], None]
    ) -> None:
        """Begin the exchange; it ends after ``timeout_s`` at the latest."""
        exchange = Exchange(self, consul, request, finished)
        self._exchanges = [other for other in self._exchanges if not other.over]
        self._exchanges.append(exchange)
        if self._machine.has("agent down"):
            self._schedule.after(0.001, exchange.finish, Unknown("connection refused"))
            return
        self._schedule.after(timeout_s, exchange.finish, Unknown("timed out"))
        prepared = consul.encode(request)
        assert prepared.url is not None and prepared.method is not None
        target = prepared.url.removeprefix(CONSUL.address)
        body = prepared.body if isinstance(prepared.body, bytes) else b""
        if isinstance(request, CreateSession) and self._machine.has("altered sessions"):
            body = json.dumps({**json.loads(body), "LockDelay": "0s", "NodeChecks": ["serfHealth"]}).encode()
        sent = Sent(prepared.method, target, (), body)
        self._carry(exchange, sent)

    def ask(self, sent: Sent, reply: Reply) -> Waiting | None:
        """Let a request arrive at the servers, by the agent of this machine."""
        return self.cluster.ask(sent, reply, self._machine.name)

    def hang_up(self) -> None:
        """Break every connection to the agent, which is gone."""
        for exchange in self._exchanges:
            if not exchange.over:
                self._schedule.after(0.001, exchange.finish, Unknown("connection reset"))

    def forget(self) -> None:
        """Drop the exchanges of a supervisor that is gone."""
        for exchange in self._exchanges:
            exchange.drop()
        self._exchanges.clear()

    # --- there and back ----------------------------------------------------------------------------

    def _carry(self, exchange: Exchange, sent: Sent) -> None:
        if self._machine.has("duplicates") and self._dice.random() < 0.5:
            self._schedule.after(self._dice.uniform(*AGAIN_AFTER_S), self._arrive_again, sent)
        if self._is_lost("requests lost"):
            return
        way_s = self._way_s()
        if isinstance(exchange.request, Write) and self._machine.has("late writes"):
            way_s += self._dice.uniform(*LATE_S)
        self._schedule.after(way_s, exchange.arrive, sent)

    def _arrive_again(self, sent: Sent) -> None:
        waiting = self.ask(sent, lambda answer: None)
        if waiting is not None:
            self.cluster.abandon(waiting)

    def carry_back(self, exchange: Exchange, answer: HttpAnswer | None) -> None:
        if exchange.over or self._is_lost("answers lost"):
            return
        outcome: Outcome = Unknown("connection reset")
        if answer is not None:
            outcome = _decoded(exchange, answer)
        self._schedule.after(self._way_s(), exchange.finish, outcome)

    def _is_lost(self, direction: str) -> bool:
        machine = self._machine
        if machine.has("cut off") or machine.has("silent agent") or machine.has(direction):
            return True
        return machine.has("lossy") and self._dice.random() < LOSSY_SHARE

    def _way_s(self) -> float:
        way_s = self._dice.uniform(*WAY_S)
        if self._machine.has("delays"):
            way_s += self._dice.uniform(*DELAY_S)
        if self._machine.has("slow agent"):
            way_s += self._dice.uniform(*SLOW_AGENT_S)
        return way_s


def _decoded(exchange: Exchange, answer: HttpAnswer) -> Outcome:
    response = requests.Response()
    response.status_code = answer.status
    response._content = answer.body
    response.headers.update(answer.headers)
    return exchange.consul.decode(exchange.request, response)
