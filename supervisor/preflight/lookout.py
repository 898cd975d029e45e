"""For the daemon: whether the hooks of its items can start, at the start, after a reload, from time to time.

Another process makes the looks. Here it is kept in mind what was found of each item, and the core is
told of what is new. After the first looks at what a file names, it is also told in the log what others
on this machine may read or change.
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

LOOK_AGAIN_S = 60.0  # a hook that vanished is told of long before most locks change hands
MENDED_S = 10.0  # while something cannot start: an operator who mends it waits no longer
JITTER = 0.1  # of either, so that the nodes of a fleet do not look in step
# Of earlier looks, each with twenty processes at most: a file system whose server has taken a question and
# does not answer keeps even a killed process, and on_lose needs room for its own.
HUNG_MAX = 4
TOLD_AT_ONCE = 20  # items in one turn of the loop: a millisecond or two

Answer = list[tuple[str, str, str]]


class Lookout:
    """Of one daemon. ``dispatch`` takes each HooksChecked, in a turn of the loop that it may fill."""

    def __init__(
        self,
        dispatch: Callable[[HooksChecked], None],
        log: Log,
        environ: Mapping[str, str],
        path: Path | None,
    ) -> None:
        """``environ``: what hooks inherit; ``path``: of the configuration."""
        self._dispatch = dispatch
        self._log = log
        self._environ = environ
        self._path = path
        self._question = Question()
        self._asked = b""
        self._needs: dict[str, list[Need]] = {}  # by item, those that count for the core
        self._found: dict[str, tuple[Fault, ...]] = {}  # by item, as the core was told
        self._answers: dict[int, Answer] = {}
        self._owed: dict[str, int] = {}  # by item: looks without an answer yet
        self._waiting: dict[int, list[str]] = {}  # by look: the items that need it
        self._news: deque[HooksChecked] = deque()
        self._file_modes: bytes | None = None
        self._inquiry: Inquiry | None = None
        self._groups: list[int] = []  # of processes that looked, as long as one of them is left
        self._timer: asyncio.TimerHandle | None = None
        self._telling: asyncio.Handle | None = None

    def follow(self, config: Config) -> None:
        """Look at what this file names, now; what was found before counts no more."""
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
        self._news.clear()
        if self._path is not None:
            asked = file_modes_question(self._path, config, in_use=True)
            self._file_modes = marshal.dumps({"file_modes": asked})
        self._look()

    def close(self) -> None:
        """Look no more."""
        for handle in (self._timer, self._telling):
            if handle is not None:
                handle.cancel()
        self._timer = self._telling = None
        if self._inquiry is not None:
            self._inquiry.close()
            self._inquiry = None

    # --- looking ---------------------------------------------------------------------------------

    def _look(self) -> None:
        self._answers = {}
        self._owed = Counter(item for items in self._waiting.values() for item in items)
        for item in self._needs.keys() - self._owed.keys():
            self._tell(item)
        if self._question.looks:
            self._ask(self._asked, self._answered, self._looked, alone=True)
        else:
            self._looked("")

    def _look_again(self) -> None:
        """Unless too much of earlier looks hangs: until that ends what was found counts, also the hang."""
        self._groups = [each for each in self._groups if group.exists(each) and group.runs(each)]
        if len(self._groups) < HUNG_MAX:
            self._look()
        else:
            self._look_later(failed=True)

    def _ask(
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
                self._tell(item)

    def _looked(self, failure: str) -> None:
        """All looks are answered; or, by a failure of ours, they are not. Such a failure keeps no node from
        contending: what was known counts, and a node of which nothing is known is taken to be right."""
        self._inquiry = None
        if not failure and any(self._owed.values()):
            failure = "the process that looks was killed before it had answered"
        if failure:
            self._log.line(
                "warning", "look-failed", why=failure, remedy="nothing: the supervisor looks again by itself"
            )
            for item in [item for item in self._needs if self._owed.get(item) and item not in self._found]:
                self._hear(HooksChecked(item, ()))
        asked, self._file_modes = self._file_modes, None
        if asked is None:
            self._look_later(failed=bool(failure))
            return
        self._warn()
        audited = partial(self._has_audited, failed=bool(failure))
        self._ask(asked, self._is_doubtful, audited, alone=False)

    def _look_later(self, *, failed: bool) -> None:
        pause_s = MENDED_S if failed or any(self._found.values()) else LOOK_AGAIN_S
        pause_s *= random.uniform(1 - JITTER, 1 + JITTER)
        self._timer = asyncio.get_running_loop().call_later(pause_s, self._look_again)

    # --- telling ---------------------------------------------------------------------------------

    def _tell(self, item: str) -> None:
        """What was found of this item, unless the core knows it."""
        faults = tuple(
            Fault(need.hook, why, remedy)
            for need in self._needs[item]
            for _, why, remedy in self._answers[need.look]
        )
        if self._found.get(item) != faults:
            self._found[item] = faults
            self._hear(HooksChecked(item, faults))

    def _hear(self, event: HooksChecked) -> None:
        self._news.append(event)
        if self._telling is None:
            self._telling = asyncio.get_running_loop().call_soon(self._pass_on)

    def _pass_on(self) -> None:
        """Some items in a turn of the loop, with whatever else is due between them."""
        self._telling = None
        for _ in range(min(TOLD_AT_ONCE, len(self._news))):
            self._dispatch(self._news.popleft())
        if self._news:
            self._telling = asyncio.get_running_loop().call_later(0.0, self._pass_on)

    def _warn(self) -> None:
        """Warn of hooks without which a node can hold all the same."""
        for need in self._question.needs:
            if not need.needed:
                for _, why, remedy in self._answers.get(need.look, ()):
                    self._doubt(Problem("", 0, 0, dotted(need.path), f"cannot start here: {why}: {remedy}"))

    def _is_doubtful(self, problem: tuple[str, str, str]) -> None:
        file, path, message = problem
        self._doubt(Problem(file, 0, 0, path, message))

    def _doubt(self, problem: Problem) -> None:
        self._log.line("warning", "configuration", why=str(problem))

    def _has_audited(self, failure: str, *, failed: bool) -> None:
        """``failed``: the looks before this one were not all answered, so the next ones come soon."""
        self._inquiry = None
        if failure:
            why = f"cannot look at the modes and owners of what the configuration names: {failure}"
            self._log.line("warning", "configuration", why=why)
        self._look_later(failed=failed)
