"""Programs and folders on a hung file system: such a hook hangs alone, and the daemon goes on."""

import asyncio
import cProfile
import subprocess
from pathlib import Path

import pytest

from supervisor.adapters.hooks import command as commands
from supervisor.adapters.hooks.attempts import TOO_MANY_LEFT
from supervisor.adapters.hooks.spawn import launched
from supervisor.adapters.hooks.unkillable import LOOK_S, UNKILLABLE_MAX, Unkillable
from supervisor.core.settings import Command
from tests.processes.hooks.test_shortage import no_descriptors
from tests.processes.hooks.trial import shell, trial
from tests.support.captured import captured
from tests.support.hung import hung, needs_root, stuck
from tests.support.patience import PATIENCE_S

pytestmark = needs_root


@pytest.fixture
def far(tmp_path: Path) -> Path:
    """Return a folder with a program in it."""
    folder = tmp_path / "far"
    folder.mkdir()
    program = folder / "hook"
    program.write_text("#!/bin/sh\nexit 0\n")
    program.chmod(0o755)
    return folder


def reached(far: Path, near: Path, way: str) -> Command:
    """Return a command that needs something of the folder before its program runs."""
    link, script = near / "link", near / "script"
    link.symlink_to(far / "hook")
    script.write_text(f"#!{far / 'hook'}\n")
    script.chmod(0o755)
    return {
        "program": Command((str(far / "hook"),)),
        "symlink": Command((str(link),)),
        "interpreter": Command((str(script),)),
        "PATH": Command(("no-such-program",), env=(("PATH", f"{far}:/usr/bin:/bin"),)),
        "cwd": shell("exit 0", cwd=str(far)),
        "relative": Command(("./far/hook",), cwd=str(near)),
        "user": Command((str(far / "hook"),), user="nobody"),
        "cwd and user": shell("exit 0", cwd=str(far), user="nobody"),
    }[way]


@pytest.mark.long
@pytest.mark.parametrize(
    "way", ["program", "symlink", "interpreter", "PATH", "cwd", "relative", "user", "cwd and user"]
)
async def test_a_start_that_hangs_before_its_program_runs_hangs_only_its_own_child(
    way: str, far: Path, tmp_path: Path
) -> None:
    async with trial() as one:
        # The user is known by then, because the look for it has a time of its own, which is skipped as well.
        assert await one.run(shell("exit 0", user="nobody"), attempt=3) == (True, "exit 0")
        with hung(far):
            started = one.start(reached(far, tmp_path, way), timeout_s=1000)
            assert await one.run("exit 0", attempt=2) == (True, "exit 0")
            assert one.hooks.running == 1
            one.skip(1000)
            ok, detail = await one.outcome(started)
            assert not ok and detail.startswith("timed out after 1000s")


async def test_a_hook_with_a_user_does_not_search_its_tools_on_a_hung_path(far: Path) -> None:
    async with trial({"PATH": f"{far}:/usr/bin:/bin"}) as one:
        with hung(far):
            assert await one.run(shell("exit 0", user="nobody", group="nogroup")) == (True, "exit 0")


@pytest.mark.parametrize("name", ["hook", "a=b"])
def test_a_launched_program_runs_as_if_it_had_been_started_directly(name: str, tmp_path: Path) -> None:
    program = tmp_path / name
    program.write_text('#!/bin/sh\necho "$0|$*|$(pwd)|$A"; exit 7\n')
    program.chmod(0o755)
    argv = launched([str(program), "x y", "--"], str(tmp_path))
    done = captured(argv, env={"A": "1", "PATH": "/bin"})
    assert (done.returncode, done.stdout) == (7, f"{program}|x y --|{tmp_path}|1\n")


async def test_checks_that_outlive_sigkill_are_bounded_and_go_on_once_they_end(
    monkeypatch: pytest.MonkeyPatch, far: Path
) -> None:
    """Each such check keeps a process and a descriptor, and on_lose needs both."""
    monkeypatch.setattr(commands, "KILL_GRACE_S", 0.02)
    check = Command((str(far / "hook"),), kill_after_s=0.01)
    async with trial() as one:
        numbers = iter(range(1, 1000))

        async def outcome(event: str) -> tuple[bool, str]:
            number = next(numbers)
            return await one.run(check, timeout_s=0.05, event=event, name="n", attempt=number)

        async def leaves_one(event: str) -> None:
            """Run a check or a hook until its process has hung before its time was up."""
            async with asyncio.timeout(PATIENCE_S):
                while "processes of it are left" not in (await outcome(event))[1]:
                    pass

        with stuck(far):
            for _ in range(UNKILLABLE_MAX):
                await leaves_one("check")
            assert await outcome("check") == (False, f"cannot start: {TOO_MANY_LEFT}")
            await leaves_one("lose")  # on_lose is always tried

        async def passes() -> bool:
            number = next(numbers)
            return (await one.run(check, event="check", name="n", attempt=number))[0]

        async with asyncio.timeout(PATIENCE_S):
            while not await passes():
                await asyncio.sleep(0.01)


async def test_groups_that_are_left_cost_little_and_are_not_forgotten_without_descriptors() -> None:
    ended, left = list[int](), list[str]()
    unkillable = Unkillable(ended.append, lambda item, processes: left.append(processes))
    children = [subprocess.Popen(["sleep", "300"], process_group=0) for _ in range(3)]
    try:
        with no_descriptors():
            for child in children:
                unkillable.watch(child.pid, "n")
            await asyncio.sleep(LOOK_S * 2)  # a look within that
            assert not ended and left[-1].count("?") == len(children)
        with cProfile.Profile() as profile:
            await asyncio.sleep(LOOK_S * 4)
        assert sum(each.callcount for each in profile.getstats() if "listdir" in str(each.code)) <= 2
    finally:
        for child in children:
            child.kill()
            child.wait()
    async with asyncio.timeout(PATIENCE_S):
        while left[-1]:
            await asyncio.sleep(0.01)
    assert sorted(ended) == sorted(child.pid for child in children)
