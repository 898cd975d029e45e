"""Sequences played on both sides at once, step by step, and the lines of each side.

All sequences go in lock-step: first those whose next step is to wait, then, when these surely wait, all
others. After each step exactly the queries must have been woken that the model names.
"""

import http.client
import json
import time
from collections.abc import Iterable
from dataclasses import dataclass, field

from supervisor.rehearsal.devagent.model import Waiting
from supervisor.reporting.http_server import HttpAnswer
from tests.consul.devagent.sequences import Sequence, Step, deadlines, kept
from tests.consul.devagent.sides import ModelSide, RealSide, now
from tests.support.patience import patient

ANSWER_S = 5.0  # for a query that the model has answered
SLACK_S = 0.12  # a step this near to a deadline is not compared


@dataclass(slots=True)
class Run:
    """One sequence on both sides.

    told: the lines that both sides must share.
    """

    sequence: Sequence
    prefix: str
    position: int = 0
    names: tuple[dict[str, str], dict[str, str]] = field(default_factory=lambda: ({}, {}))
    ids: tuple[list[str], list[str]] = field(default_factory=lambda: ([], []))
    told: tuple[list[str], list[str]] = field(default_factory=lambda: ([], []))
    waits: list[tuple[int, Waiting | None, http.client.HTTPConnection]] = field(default_factory=list)
    parted: bool = False  # one side was woken and the other was not, so the sequence is over
    sure: int | None = None  # this many lines are compared; None: all

    @property
    def lines(self) -> int:
        return len(self.told[0])

    @property
    def next(self) -> Step | None:
        return self.sequence.steps[self.position] if self.position < len(self.sequence.steps) else None

    def tell(self, model: str, real: str) -> None:
        self.told[0].append(model)
        self.told[1].append(real)

    def keep(self, step: Step, model: HttpAnswer, real: HttpAnswer) -> None:
        """Keep the names of an answer for later steps."""
        if step.name:
            for names, ids, answer in zip(self.names, self.ids, (model, real), strict=True):
                names[step.name] = kept(answer)
                ids.append(names[step.name])


def play(runs: list[Run], real: RealSide, model: ModelSide, settle_s: float) -> None:
    begun = now()
    while steps := [(step.at_s, not step.watch, run) for run in runs if (step := run.next)]:
        due_s = min(at_s for at_s, _, _ in steps)
        time.sleep(max(0.0, begun + due_s - now()))
        due = sorted((item for item in steps if item[0] <= due_s), key=lambda item: item[1])
        settled = False
        for _, answers_at_once, run in due:
            if answers_at_once and not settled:
                settled = True
                if any(not other for _, other, _ in due):
                    time.sleep(settle_s)
            _step(run, real, model)
            _collect(runs, real, model)
        time.sleep(settle_s if not settled else 0)
    time.sleep(settle_s)
    _collect(runs, real, model)
    for run in runs:
        for number, waiting, connection in run.waits:
            run.tell(f"{number} waits" if waiting else "", f"{number} waits")
            if waiting is not None:
                model.model.abandon(waiting)
            connection.close()


def _step(run: Run, real: RealSide, model: ModelSide) -> None:
    step = run.next
    assert step is not None
    number = run.position
    run.position += 1
    requests = [step.request(run.prefix, names) for names in run.names]
    at = now()
    answer = model.ask(requests[0], at)
    if step.watch:
        connection = real.begin(requests[1])
        if isinstance(answer, Waiting):
            run.waits.append((number, answer, connection))
            return
        met = real.over(connection, patient(ANSWER_S)) or HttpAnswer(0, b"waits")
    else:
        met = real.ask(requests[1])
    assert isinstance(answer, HttpAnswer), f"waits: {requests[0].target}"
    run.keep(step, answer, met)
    _doubt(run, model, at, now())
    run.tell(f"{number} {_line(answer, run)}", f"{number} {_line(met, run)}")


def _collect(runs: Iterable[Run], real: RealSide, model: ModelSide) -> None:
    """Collect the queries that were woken: exactly those that the model names."""
    for run in runs:
        for wait in tuple(run.waits):
            number, waiting, connection = wait
            assert waiting is not None
            at = now()
            expected = model.over(waiting, at)
            met = real.over(connection, patient(ANSWER_S) if expected and not run.parted else 0.0)
            if expected is None and met is None:
                continue
            _doubt(run, model, at, now())
            run.parted |= (expected is None) != (met is None)
            if expected is None:
                model.model.abandon(waiting)
            run.waits.remove(wait)
            shown = [
                f"woken {number} {_line(answer, run)}" if answer else f"{number} waits"
                for answer in (expected, met)
            ]
            run.tell(f"{run.position}: {shown[0]}", f"{run.position}: {shown[1]}")


def _doubt(run: Run, model: ModelSide, begun: float, ended: float) -> None:
    """Drop a step that was near to a deadline, as on a busy machine, from the comparison."""
    if run.sequence.timed and run.sure is None:
        spans = deadlines(model.model, run.prefix)
        if any(early - SLACK_S < ended and begun < late + SLACK_S for early, late in spans):
            run.sure = run.lines


def _line(answer: HttpAnswer, run: Run) -> str:
    """Return the line of an answer.

    The index of an absent key is that of all keys or sessions, and where time passes, those of other
    sequences end at about this moment.
    """
    body = answer.body
    told = answer.headers
    if run.sequence.timed and (answer.status == 404 or body.strip() == b"[]"):
        told = tuple((name, value) for name, value in told if name != "X-Consul-Index")
    headers = " ".join(f"{name.rpartition('-')[2]}={value}" for name, value in told)
    if ("Content-Type", "application/json") in answer.headers:
        shown = json.loads(body)
        if isinstance(shown, list) and shown and isinstance(shown[0], dict) and "ID" in shown[0]:
            shown.sort(
                key=lambda session: session["CreateIndex"]
            )  # ids are random, and their order is as well
        body = json.dumps(shown, ensure_ascii=False).encode()
    return f"{answer.status} {headers} {body.decode('utf-8', 'replace')}"
