"""How the daemon looks from time to time, and what it makes of looks that do not end."""

import asyncio
import os
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from supervisor.config import Config, load
from supervisor.core.events import HooksChecked
from supervisor.hooks import group
from supervisor.preflight import lookout as lookouts
from supervisor.preflight import questions
from supervisor.preflight.inquiry import Inquiry
from supervisor.preflight.lookout import Lookout
from supervisor.telemetry.log import Log
from tests.support.hung import needs_root, stuck
from tests.support.patience import PATIENCE_S

FILE = """
elections:
  namenode:
    key: service/leader
    on_lose:
      - exec: [{program}]
"""


@pytest.fixture
def program(tmp_path: Path) -> Path:
    """A hook in a folder of its own."""
    made = tmp_path / "far" / "hook"
    made.parent.mkdir()
    made.write_text("#!/bin/sh\n")
    made.chmod(0o755)
    return made


def config_with(program: Path, folder: Path) -> Config:
    path = folder / "supervisor.yml"
    path.write_text(FILE.format(program=program))
    return load(path, dict(os.environ), "node-1")


class Told:
    """What the core was told, and the groups of the processes that looked."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.checked: list[HooksChecked] = []
        self.groups: list[int] = []
        told = self

        class Counted(Inquiry):
            def __init__(self, *given: object) -> None:
                super().__init__(*given)  # type: ignore[arg-type]
                told.groups.append(self.group)

        monkeypatch.setattr(lookouts, "Inquiry", Counted)

    def lookout(self) -> Lookout:
        log = Log("error", "json", lambda: 0.0, journal=False)
        return Lookout(self.checked.append, log, dict(os.environ), None)

    @property
    def left(self) -> list[int]:
        """Groups of which a process is left."""
        return [each for each in self.groups if group.exists(each) and group.runs(each)]


async def until(holds: Callable[[], bool]) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while not holds():
            await asyncio.sleep(0.01)


@needs_root
def test_looks_that_even_sigkill_does_not_end_stay_few_and_go_on_once_they_end(
    monkeypatch: pytest.MonkeyPatch, program: Path, tmp_path: Path
) -> None:
    """One such process more every ten seconds would leave on_lose none by the next day."""
    monkeypatch.setattr(questions, "LOOK_S", 0.1)
    monkeypatch.setattr(lookouts, "MENDED_S", 0.02)
    config, told = config_with(program, tmp_path), Told(monkeypatch)

    async def main() -> None:
        lookout = told.lookout()
        again, timed = 0, lookout._look_again

        def counted() -> None:
            nonlocal again
            again += 1
            timed()

        monkeypatch.setattr(lookout, "_look_again", counted)
        with stuck(program.parent):
            lookout.follow(config)
            await until(lambda: again >= lookouts.HUNG_MAX + 5)
            assert len(told.left) == lookouts.HUNG_MAX
            [checked] = told.checked
            assert [fault.hook for fault in checked.faults] == ["on_lose[0]"]
        await until(lambda: told.checked[-1] == HooksChecked("namenode", ()))
        lookout.close()
        await until(lambda: not told.left)

    asyncio.run(main())


def test_a_process_that_is_killed_before_it_has_answered_keeps_no_node_from_contending(
    monkeypatch: pytest.MonkeyPatch, program: Path, tmp_path: Path
) -> None:
    """The kernel's OOM killer may take it. It kills itself, too, but not before all is answered."""
    killed = [sys.executable, "-c", "import os; os.kill(os.getpid(), 9)"]
    monkeypatch.setattr(lookouts, "command", lambda *, alone: killed)
    config, told = config_with(program, tmp_path), Told(monkeypatch)

    async def main() -> None:
        lookout = told.lookout()
        lookout.follow(config)
        await until(lambda: bool(told.checked))
        lookout.close()

    asyncio.run(main())
    assert told.checked == [HooksChecked("namenode", ())]
