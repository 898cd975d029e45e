"""The run child, which lives while this node leads, and never longer than the daemon."""

import signal
import time

import pytest

from supervisor.core.events import RunEnded
from supervisor.core.settings import Command
from tests.processes.hooks.trial import alive, shell, trial
from tests.support.patience import PATIENCE_S
from tests.support.programs import run_program


@pytest.mark.parametrize(
    ("command", "detail"),
    [
        (shell("exit 0"), "exit 0"),
        (shell("exit 7"), "exit 7"),
        (shell("kill -KILL $$"), "killed by SIGKILL"),
        (Command(("/absent/program",)), "exit 127 (command not found, by convention)"),
        (Command(("/bin/true",), cwd="/absent"), "cannot start: No such file or directory: /absent"),
    ],
)
async def test_a_run_child_that_ends_by_itself_is_reported_with_its_exit(
    command: Command, detail: str
) -> None:
    async with trial() as one:
        started = one.start_run(command)
        began = not detail.startswith("cannot start")
        assert await one.end(started) == RunEnded(started, detail, began)


async def test_a_run_child_gets_the_input_of_a_hook_and_its_lines_are_named_run() -> None:
    async with trial() as one:
        await one.end(one.start_run('echo "$CONSUL_SUPERVISOR_FENCING_TOKEN"; cat'))
    assert one.text()[0] == "4711" and one.text()[1].startswith('{"event": "acquire", ')
    assert {line.hook for line in one.lines} == {"run"}


async def test_stop_run_ends_a_run_child_with_term() -> None:
    async with trial() as one:
        started = one.start_run("trap 'echo bye; exit 0' TERM; echo ready; while :; do sleep 0.05; done")
        await one.says("ready")
        one.stop_run(started)
        one.stop_run(started)
        assert await one.end(started) == RunEnded(started, "stopped")
        one.stop_run(started)
    assert one.text() == ["ready", "bye"]


async def test_stop_run_kills_a_run_child_after_stop_timeout() -> None:
    async with trial() as one:
        started = one.start_run("trap '' TERM; echo ready; while :; do sleep 0.05; done", stop_timeout_s=0.2)
        await one.says("ready")
        one.stop_run(started)
        assert await one.end(started) == RunEnded(started, "stopped, ignored TERM")


def test_a_run_child_dies_with_the_process_that_started_it() -> None:
    """A killed supervisor must not leave a program running that only a leader may run."""
    ran = run_program("""
        import asyncio, os, signal
        from tests.processes.hooks.trial import trial

        async def main():
            async with trial() as one:
                one.start_run("echo $$; exec sleep 300")
                print((await one.until(lambda: one.text() or None))[0], flush=True)
                os.kill(os.getpid(), signal.SIGKILL)

        asyncio.run(main())
    """)
    assert ran.returncode == -signal.SIGKILL, ran.stderr
    pid = int(ran.stdout)
    give_up_at = time.monotonic() + PATIENCE_S
    while alive(pid) and time.monotonic() < give_up_at:
        time.sleep(0.01)
    assert not alive(pid)
