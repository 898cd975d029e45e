"""For the daemon: whether its hooks can start, at the start, after a reload, and from time to time.

This module keeps the faults of each item, and notifies the core when they change. After the first probes of a
configuration it also logs which of its files other users of this machine can read or change.
"""

import asyncio
import random
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from pathlib import Path

from supervisor.adapters.filesystem.children import NoAnswer
from supervisor.adapters.filesystem.forked import ChildFailed, call_in_child
from supervisor.adapters.runtime.background import Background, Report
from supervisor.config import Config, Problem
from supervisor.config.problems import dotted
from supervisor.core.actions import Fault
from supervisor.core.events import HooksChecked
from supervisor.daemon.preflight.file_modes import audit
from supervisor.daemon.preflight.needs import Need, ProbeList, probes_of
from supervisor.daemon.preflight.probe_run import CHILDREN, PROBE_S, Answer, make_probes
from supervisor.reporting.telemetry.log import Log

PROBE_AGAIN_S = 60.0  # a hook that vanishes is reported long before most locks change hands
MENDED_S = 10.0  # while a hook cannot start, so that the operator's correction counts soon
JITTER = 0.1  # of either pause, so that the nodes of a fleet do not probe in step
NOTIFIED_AT_ONCE = 20  # items in one turn of the loop, which takes a millisecond or two


class HookMonitor:
    """The probes of one daemon. ``report`` handles an exception that is a bug of ours."""

    def __init__(
        self,
        dispatch: Callable[[HooksChecked], None],
        log: Log,
        environ: Mapping[str, str],
        path: Path | None,
        report: Report,
    ) -> None:
        self._dispatch = dispatch  # gives the core an event, at most NOTIFIED_AT_ONCE in a turn of the loop
        self._log = log
        self._environ = environ  # the environment that hooks inherit
        self._path = path  # the configuration. None: the modes of its files are not looked at
        self._background = Background(report)
        self._wanted = ProbeList()
        self._needs: dict[str, list[Need]] = {}  # by item: the probes without which a node cannot hold
        self._found: dict[str, tuple[Fault, ...]] = {}  # by item: the faults that the core knows
        self._answers: dict[int, list[tuple[str, str, str]]] = {}  # by probe

    def follow(self, config: Config) -> None:
        """Probe now what this configuration names, and forget all earlier faults."""
        self.close()
        self._wanted = probes_of(config.items, self._environ)
        self._needs = {settings.name: [] for settings in config.items if settings.contend}
        for need in self._wanted.needs:
            if need.needed:
                self._needs[need.item].append(need)
        self._found = {}
        self._background.start(self._watch(config))

    def close(self) -> None:
        self._background.cancel()

    # --- probing ---------------------------------------------------------------------------------

    async def _watch(self, config: Config) -> None:
        failed = await self._probe()
        self._warn()
        if self._path is not None:
            await self._audit(self._path, config)
        while True:
            pause_s = MENDED_S if failed or any(self._found.values()) else PROBE_AGAIN_S
            await asyncio.sleep(pause_s * random.uniform(1 - JITTER, 1 + JITTER))
            failed = await self._probe()

    async def _probe(self) -> bool:
        """Make all probes. Return whether some have no answer, which is a fault of ours.

        That keeps no node from contending: known faults still count, and an item of which nothing is known is
        taken to have no fault.
        """
        self._answers = {}
        await self._answered([])  # of items that need no probe
        try:
            await make_probes(self._wanted.probes, self._answered, strict=True, within_s=PROBE_S)
            return False
        except (ChildFailed, OSError) as error:
            why = str(error)
            if isinstance(error, OSError):
                why = f"cannot start a process that looks: {error.strerror}"
            remedy = "nothing: the supervisor looks again by itself"
            if not isinstance(error, NoAnswer):  # earlier probes hang, and the log has had the faults
                self._log.line("warning", "look-failed", why=why, remedy=remedy)
        await self._notify(item for item in self._needs if item not in self._found)
        return True

    async def _answered(self, answers: list[Answer]) -> None:
        self._answers.update(answers)
        known = self._answers.keys()
        await self._notify(
            item for item, needs in self._needs.items() if all(need.probe in known for need in needs)
        )

    async def _audit(self, path: Path, config: Config) -> None:
        try:
            work = partial(audit, path, config)
            problems = await call_in_child(CHILDREN, work, PROBE_S)
        except (ChildFailed, OSError) as error:
            why = getattr(error, "strerror", error)
            what = f"cannot look at the modes and owners of what the configuration names: {why}"
            problems = (Problem("", 0, 0, "", what),)
        for problem in problems:
            self._log.line("warning", "configuration", why=str(problem))

    # --- notifying the core and the log ----------------------------------------------------------

    async def _notify(self, items: Iterable[str]) -> None:
        """Notify the core of the faults of these items, unless the core knows them.

        Few are dispatched in one turn of the loop, so that other work goes on.
        """
        notified = 0
        for item in list(items):
            faults = tuple(
                Fault(need.hook, why, remedy)
                for need in self._needs[item]
                for _, why, remedy in self._answers.get(need.probe, ())
            )
            if self._found.get(item) != faults:
                self._found[item] = faults
                self._dispatch(HooksChecked(item, faults))
                notified += 1
                if notified % NOTIFIED_AT_ONCE == 0:
                    await asyncio.sleep(0)

    def _warn(self) -> None:
        """Log a warning for each hook that cannot start, if a node can hold without that hook."""
        for need in self._wanted.needs:
            if not need.needed:
                for _, why, remedy in self._answers.get(need.probe, ()):
                    problem = Problem("", 0, 0, dotted(need.path), f"cannot start here: {why}: {remedy}")
                    self._log.line("warning", "configuration", why=str(problem))
