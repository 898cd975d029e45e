"""The probes of the daemon from time to time, and probes that never end."""

import asyncio
import os
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest

from supervisor.adapters.filesystem.children import HUNG_MAX
from supervisor.config import Config, load
from supervisor.core.events import HooksChecked
from supervisor.daemon.preflight import monitor as monitors
from supervisor.daemon.preflight.monitor import HookMonitor
from supervisor.reporting.telemetry.log import Log
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


def hook_monitor(dispatch: Callable[[HooksChecked], None]) -> HookMonitor:
    log = Log("error", "json", lambda: 0.0, journal=False)
    report = asyncio.get_running_loop().call_exception_handler
    return HookMonitor(dispatch, log, dict(os.environ), None, lambda _, context: report(context))


def children() -> list[psutil.Process]:
    """Return our children that have not ended."""
    return [each for each in psutil.Process().children() if each.status() != psutil.STATUS_ZOMBIE]


async def until(holds: Callable[[], bool]) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while not holds():
            await asyncio.sleep(0.01)


@needs_root
async def test_probes_that_outlive_sigkill_are_bounded_and_go_on_once_they_end(
    monkeypatch: pytest.MonkeyPatch, program: Path, tmp_path: Path
) -> None:
    """One more such process every ten seconds would leave on_lose none by the next day."""
    monkeypatch.setattr(monitors, "PROBE_S", 0.1)
    monkeypatch.setattr(monitors, "MENDED_S", 0.02)
    config, checked = config_with(program, tmp_path), list[HooksChecked]()
    before, monitor = len(children()), hook_monitor(checked.append)
    again, timed = 0, monitor._probe

    async def counted() -> bool:
        nonlocal again
        again += 1
        return await timed()

    monkeypatch.setattr(monitor, "_probe", counted)
    with stuck(program.parent):
        alone = len(children())
        monitor.follow(config)
        await until(lambda: again >= HUNG_MAX + 5)
        assert len(children()) == alone + HUNG_MAX
        [first] = checked
        assert [fault.hook for fault in first.faults] == ["on_lose[0]"]
        unknown = list[HooksChecked]()
        after_reload = hook_monitor(unknown.append)
        after_reload.follow(config)
        await until(lambda: unknown == [HooksChecked("namenode", ())])
        after_reload.close()
    await until(lambda: checked[-1] == HooksChecked("namenode", ()))
    monitor.close()
    await until(lambda: len(children()) == before)


async def test_a_child_that_is_killed_before_its_answer_finds_no_fault(
    program: Path, tmp_path: Path, hangs: Callable[[Path], None]
) -> None:
    """The kernel's OOM killer may end the child."""
    hangs(program)
    config, checked = config_with(program, tmp_path), list[HooksChecked]()
    before, monitor = children(), hook_monitor(checked.append)
    monitor.follow(config)
    await until(lambda: children() != before)
    (child,) = [each for each in children() if each not in before]
    child.kill()
    await until(lambda: bool(checked))
    monitor.close()
    assert checked == [HooksChecked("namenode", ())]
