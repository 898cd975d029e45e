"""The child that loads the configuration: its result, its refusals, and everything that may happen to it."""

import asyncio
import fcntl
import os
import pkgutil
import resource
import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import psutil
import pytest

from supervisor.adapters.filesystem.children import NoAnswer
from supervisor.adapters.filesystem.forked import ChildFailed
from supervisor.config import Config, ConfigError, load, schema_text
from supervisor.daemon.reload import CannotReload, load_in_child, read_again
from tests.support.patience import PATIENCE_S
from tests.support.supervisor import until

GOOD = "elections: {app: {key: k, on_lose: [{shell: ':', env: {A: b}}]}, web: {value: {a: 1}}}"
BAD = "elections: {app: {keey: k}, web: {session: {ttl: 10}}}"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "c.yaml"
    path.write_text(GOOD)
    return path


def in_child(work: Callable[[], Config], within_s: float = PATIENCE_S) -> Config:
    return asyncio.run(load_in_child(work, Path("c.yaml"), within_s))


def ends_with(text: str) -> Config:
    """Fail with this text."""
    raise RuntimeError(text)


def is_killed() -> Config:
    os.kill(os.getpid(), signal.SIGKILL)
    return hangs()


def hangs() -> Config:
    while True:
        signal.pause()


@contextmanager
def no_processes() -> Iterator[None]:
    """Leave no descriptor, so that no child can be started."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (3, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_a_child_loads_the_settings_that_this_process_would_load(file: Path) -> None:
    work = partial(load, file, {}, "node1")
    assert in_child(work) == work()


def test_a_child_refuses_a_file_with_the_problems_of_this_process(file: Path) -> None:
    file.write_text(BAD)
    with pytest.raises(ConfigError) as here:
        load(file, {}, "node1")
    with pytest.raises(ConfigError) as there:
        in_child(partial(load, file, {}, "node1"))
    assert there.value.problems == here.value.problems and str(there.value) == str(here.value)


def test_a_child_uses_the_schema_of_the_running_version(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    schema_text()
    monkeypatch.setattr(pkgutil, "get_data", lambda *_: file.read_bytes())
    assert in_child(partial(load, file, {}, "node1")).items


async def test_the_loop_goes_on_while_a_child_loads(tmp_path: Path) -> None:
    """The child closes what it inherits, so it opens the pipe by its name."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writer = os.open(pipe, os.O_RDWR)

    def waits() -> Config:
        with pipe.open("rb") as reader:
            reader.read(1)
        raise RuntimeError

    task = asyncio.create_task(load_in_child(waits, Path("c.yaml"), PATIENCE_S))
    await asyncio.sleep(0.01)
    assert not task.done()
    os.write(writer, b"x")
    with pytest.raises(ChildFailed):
        await task
    os.close(writer)


def test_a_load_that_hangs_is_killed() -> None:
    before = living_children()
    with pytest.raises(NoAnswer, match="its file system did not answer within 0.05 s"):
        in_child(hangs, 0.05)
    until(lambda: living_children() <= before, "the child is gone")


def test_a_load_to_which_the_machine_leaves_little_time_goes_on_for_longer(file: Path) -> None:
    """Its time is over, but it has run meanwhile, or waits for a processor."""

    def goes_on() -> Config:
        started = time.monotonic()
        while time.monotonic() < started + 1.5:
            pass
        return load(file, {}, "node1")

    assert in_child(goes_on, 0.5).items
    with pytest.raises(NoAnswer, match="this machine left too little time to read it within 0.5 s"):
        in_child(goes_on, 0.05)


def living_children() -> set[int]:
    children = psutil.Process().children()
    return {each.pid for each in children if each.status() != psutil.STATUS_ZOMBIE}


def test_a_load_that_is_killed_is_reported_as_killed() -> None:
    with pytest.raises(ChildFailed, match="ended with -9: it was killed"):
        in_child(is_killed)


def test_a_load_that_fails_is_reported_with_the_end_of_its_trace() -> None:
    with pytest.raises(ChildFailed, match="ended with 1: RuntimeError: such a bug"):
        in_child(partial(ends_with, "such a bug"))


def test_a_reload_without_jsonschema_changes_nothing(file: Path) -> None:
    """The installation may be replaced while its daemon runs."""

    def work() -> Config:
        from supervisor.config import schema_errors

        schema_errors._validator.cache_clear()
        sys.modules["jsonschema.validators"] = None  # type: ignore[assignment]
        return load(file, {}, "node1")

    running = load(file, {}, "node1")
    with pytest.raises(
        CannotReload, match="ended with 1: ModuleNotFoundError: .*; nothing changes"
    ) as refused:
        asyncio.run(read_again(partial(load_in_child, work, file), running))
    assert not refused.value.faulty


async def test_a_reload_is_refused_if_no_child_can_be_started(file: Path) -> None:
    running = load(file, {}, "node1")
    why = "^cannot reload: no process can be started to read the configuration: Too many open files; nothing"
    with pytest.raises(CannotReload, match=why) as refused:
        with no_processes():
            await read_again(partial(load_in_child, hangs, file), running)
    assert not refused.value.faulty


def test_a_loading_child_holds_no_lock_of_the_daemon(tmp_path: Path) -> None:
    """A daemon that is killed meanwhile must leave its records to the next one."""
    with (tmp_path / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        held = lock.fileno()

        def work() -> Config:
            names = (f"/proc/self/fd/{name}" for name in os.listdir("/proc/self/fd"))
            open_files = {os.readlink(name) for name in names if os.path.lexists(name)}
            return ends_with(" ".join(sorted(open_files - {f"/proc/{os.getpid()}/fd"})))

        with pytest.raises(ChildFailed) as told:
            in_child(work)
        assert os.fstat(held) and "lock" not in str(told.value)
        assert str(told.value).count("memfd:") == 2 and "socket:" not in str(told.value)


def test_a_signal_to_a_loading_child_does_not_reach_the_daemon() -> None:
    """A handler that the child inherits would notify the loop of its parent."""

    def work() -> Config:
        os.kill(os.getpid(), signal.SIGTERM)
        os.kill(os.getpid(), signal.SIGHUP)
        return ends_with("the child goes on")

    heard: list[int] = []
    before = signal.signal(signal.SIGTERM, lambda number, _: heard.append(number))
    try:
        with pytest.raises(ChildFailed, match="the child goes on"):
            in_child(work)
    finally:
        signal.signal(signal.SIGTERM, before)
    assert heard == []
