"""For the daemon: whether its hooks can start, at the start, after a reload, and from time to time.

Another process makes the looks. This module keeps the faults of each item, and notifies the core when they
change. After the first looks at a configuration it also logs which of its files other users of this machine
can read or change.
"""

import asyncio
import marshal
import random
from collections import Counter, deque
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from supervisor.check.file_modes import question as file_modes_question
from supervisor.config import Config, Problem
from supervisor.config.problems import dotted
from supervisor.core.actions import Fault
from supervisor.core.events import HooksChecked
from supervisor.hooks import group
from supervisor.preflight import command
from supervisor.preflight.inquiry import Inquiry
from supervisor.preflight.questions import Need, Question, question_of
from supervisor.telemetry.log import Log

LOOK_AGAIN_S = 60.0  # a hook that vanishes is reported long before most locks change hands
MENDED_S = 10.0  # while a hook cannot start, so that the operator's correction counts soon
JITTER = 0.1  # of either pause, so that the nodes of a fleet do not look in step
# Runs that may hang, each with at most twenty processes. A file system whose server takes a request and does
# not answer keeps even a killed process, and on_lose needs room for processes of its own.
HUNG_MAX = 4
NOTIFIED_AT_ONCE = 20  # items in one turn of the loop, which takes a millisecond or two

Answer = list[tuple[str, str, str]]


class Lookout:
    """The looks of one daemon.

    dispatch: gives the core an event. At most NOTIFIED_AT_ONCE calls follow each other in a turn of the loop.
    environ: the environment that hooks inherit.
    path: the configuration. None: the modes of its files are not looked at.
    """

    def __init__(
        self,
        dispatch: Callable[[HooksChecked], None],
        log: Log,
        environ: Mapping[str, str],
        path: Path | None,
    ) -> None:
        self._dispatch = dispatch
        self._log = log
        self._environ = environ
        self._path = path
        self._question = Question()
        self._asked = b""
        self._needs: dict[str, list[Need]] = {}  # by item: the looks without which a node cannot hold
        self._found: dict[str, tuple[Fault, ...]] = {}  # by item: the faults that the core knows
        self._answers: dict[int, Answer] = {}  # by look
        self._owed: dict[str, int] = {}  # by item: the number of looks without an answer
        self._waiting: dict[int, list[str]] = {}  # by look: the items that need it
        self._events: deque[HooksChecked] = deque()
        self._file_modes: bytes | None = None
        self._inquiry: Inquiry | None = None
        self._groups: list[int] = []  # process groups of runs that may hang
        self._timer: asyncio.TimerHandle | None = None
        self._notifying: asyncio.Handle | None = None

    def follow(self, config: Config) -> None:
        """Look now at what this configuration names, and forget all earlier faults."""
        self.close()
        self._question = question_of(config.items, self._environ)
        self._asked = self._question.asked(strict=True)
        self._needs = {settings.name: [] for settings in config.items if settings.contend}
        for need in self._question.needs:
            if need.needed:
                self._needs[need.item].append(need)
        self._waiting = {}
        for item, needs in self._needs.items():
            for look in {need.look for need in needs}:
                self._waiting.setdefault(look, []).append(item)
        self._found = {}
        self._events.clear()
        if self._path is not None:
            asked = file_modes_question(self._path, config, in_use=True)
            self._file_modes = marshal.dumps({"file_modes": asked})
        self._look()

    def close(self) -> None:
        """Stop looking."""
        for handle in (self._timer, self._notifying):
            if handle is not None:
                handle.cancel()
        self._timer = self._notifying = None
        if self._inquiry is not None:
            self._inquiry.close()
            self._inquiry = None

    # --- looking ---------------------------------------------------------------------------------

    def _look(self) -> None:
        self._answers = {}
        self._owed = Counter(item for items in self._waiting.values() for item in items)
        for item in self._needs.keys() - self._owed.keys():
            self._report(item)
        if self._question.looks:
            self._run(self._asked, self._answered, self._looked, alone=True)
        else:
            self._looked("")

    def _look_again(self) -> None:
        """Look again, unless HUNG_MAX earlier runs hang. Until one of them ends the known faults count."""
        self._groups = [each for each in self._groups if group.exists(each) and group.runs(each)]
        if len(self._groups) < HUNG_MAX:
            self._look()
        else:
            self._look_later(failed=True)

    def _run(
        self, question: bytes, line: Callable[[Any], None], ended: Callable[[str], None], *, alone: bool
    ) -> None:
        try:
            self._inquiry = Inquiry(command(alone=alone), question, line, ended)
        except OSError as error:
            ended(f"cannot start a process that looks: {error.strerror}")
        else:
            self._groups.append(self._inquiry.group)

    def _answered(self, answer: tuple[int, Answer]) -> None:
        look, faults = answer
        self._answers[look] = faults
        for item in self._waiting.get(look, ()):
            self._owed[item] -= 1
            if not self._owed[item]:
                self._report(item)

    def _looked(self, failure: str) -> None:
        """Handle the end of a run.

        failure: why looks have no answer, which is a fault of ours. Blank: there is no such reason.
        A failure keeps no node from contending: known faults still count, and an item of which nothing is
        known is taken to have no fault.
        """
        self._inquiry = None
        if not failure and any(self._owed.values()):
            failure = "the process that looks was killed before it had answered"
        if failure:
            self._log.line(
                "warning", "look-failed", why=failure, remedy="nothing: the supervisor looks again by itself"
            )
            for item in [item for item in self._needs if self._owed.get(item) and item not in self._found]:
                self._queue(HooksChecked(item, ()))
        asked, self._file_modes = self._file_modes, None
        if asked is None:
            self._look_later(failed=bool(failure))
            return
        self._warn()
        audited = partial(self._has_audited, failed=bool(failure))
        self._run(asked, self._warn_of_file, audited, alone=False)

    def _look_later(self, *, failed: bool) -> None:
        pause_s = MENDED_S if failed or any(self._found.values()) else LOOK_AGAIN_S
        pause_s *= random.uniform(1 - JITTER, 1 + JITTER)
        self._timer = asyncio.get_running_loop().call_later(pause_s, self._look_again)

    # --- notifying the core and the log ----------------------------------------------------------

    def _report(self, item: str) -> None:
        """Notify the core of the faults of this item, unless the core knows them."""
        faults = tuple(
            Fault(need.hook, why, remedy)
            for need in self._needs[item]
            for _, why, remedy in self._answers[need.look]
        )
        if self._found.get(item) != faults:
            self._found[item] = faults
            self._queue(HooksChecked(item, faults))

    def _queue(self, event: HooksChecked) -> None:
        self._events.append(event)
        if self._notifying is None:
            self._notifying = asyncio.get_running_loop().call_soon(self._dispatch_some)

    def _dispatch_some(self) -> None:
        """Dispatch some events, and the rest in later turns of the loop, so that other work goes on."""
        self._notifying = None
        for _ in range(min(NOTIFIED_AT_ONCE, len(self._events))):
            self._dispatch(self._events.popleft())
        if self._events:
            self._notifying = asyncio.get_running_loop().call_later(0.0, self._dispatch_some)

    def _warn(self) -> None:
        """Log a warning for each hook that cannot start, if a node can hold without that hook."""
        for need in self._question.needs:
            if not need.needed:
                for _, why, remedy in self._answers.get(need.look, ()):
                    message = f"cannot start here: {why}: {remedy}"
                    self._log_warning(Problem("", 0, 0, dotted(need.path), message))

    def _warn_of_file(self, problem: tuple[str, str, str]) -> None:
        file, path, message = problem
        self._log_warning(Problem(file, 0, 0, path, message))

    def _log_warning(self, problem: Problem) -> None:
        self._log.line("warning", "configuration", why=str(problem))

    def _has_audited(self, failure: str, *, failed: bool) -> None:
        """Handle the end of the look at file modes.

        failure: why that look could not go on. Blank: there is no such reason.
        failed: whether looks at hooks have no answer, so that the next looks come soon.
        """
        self._inquiry = None
        if failure:
            why = f"cannot look at the modes and owners of what the configuration names: {failure}"
            self._log.line("warning", "configuration", why=why)
        self._look_later(failed=failed)
