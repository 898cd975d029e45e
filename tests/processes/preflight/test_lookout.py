"""The looks of the daemon from time to time, and looks that never end."""

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
    """Return a hook in a folder of its own."""
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
    """The answers that the core got, and the process groups of the looks."""

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
        """The groups that still have a process."""
        return [each for each in self.groups if group.exists(each) and group.runs(each)]


async def until(holds: Callable[[], bool]) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while not holds():
            await asyncio.sleep(0.01)


@needs_root
def test_looks_that_outlive_sigkill_are_bounded_and_go_on_once_they_end(
    monkeypatch: pytest.MonkeyPatch, program: Path, tmp_path: Path
) -> None:
    """One more such process every ten seconds would leave on_lose none by the next day."""
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


def test_a_look_that_is_killed_before_its_answer_finds_no_fault(
    monkeypatch: pytest.MonkeyPatch, program: Path, tmp_path: Path
) -> None:
    """The kernel's OOM killer may end the process, whereas it ends itself only after its answers."""
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
