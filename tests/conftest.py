"""Fixtures that every test may use. Fixtures of some tests stand beside those tests."""

import asyncio
import fcntl
import gc
import inspect
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from supervisor.adapters.filesystem.mounts import is_local
from tests.support.consul import WAYS, Agent
from tests.support.guarded import EACH_WAY
from tests.support.leftovers import files
from tests.support.share import share_of
from tests.support.staging import reported
from tests.support.supervisor import ENVIRON
from tests.support.surroundings import make_our_own

make_our_own()  # each worker imports this before it collects a test

is_local("/")  # its table stays open from the first call on, and would look like a leak of a test

_before = files()
_leave_child = subprocess.Popen.__exit__


def _leave_child_of_a_test(
    child: subprocess.Popen[Any], kind: type[BaseException] | None, *rest: Any
) -> None:
    """End a child whose test has failed, because ``with Popen(...)`` would wait for it without end."""
    if kind is not None:
        child.kill()
    _leave_child(child, kind, *rest)


subprocess.Popen.__exit__ = _leave_child_of_a_test  # type: ignore[method-assign]

pytest_runtest_makereport = pytest.hookimpl(wrapper=True)(reported)


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_sessionfinish(session: pytest.Session) -> Iterator[None]:
    """Let the run fail, once all its workers have ended, when a test has written to these places."""
    yield
    left = sorted(files() - _before)
    if left and not hasattr(session.config, "workerinput"):
        print(f"\nleft behind: {', '.join(left)}", file=sys.__stdout__)
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what is not of the share: tests marked long one by one, others by their files."""
    groups = {item: item.nodeid if item.get_closest_marker("long") else str(item.path) for item in items}
    kept = set(share_of(dict.fromkeys(groups.values())))
    left_out = [item for item in items if groups[item] not in kept]
    if left_out:
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if groups[item] in kept]


def pytest_collection_finish() -> None:
    """Leave modules and collected tests out of each search for garbage, which some tests end with."""
    gc.collect()
    gc.freeze()


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """Run a test that is a coroutine in a loop of its own."""
    if not inspect.iscoroutinefunction(pyfuncitem.obj):
        return None
    given = {name: pyfuncitem.funcargs[name] for name in inspect.signature(pyfuncitem.obj).parameters}
    asyncio.run(pyfuncitem.obj(**given))
    return True


@pytest.fixture(scope="session", autouse=True)
def own_state_dir(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Let no test find, or wind up, the records of a supervisor that this machine runs, or leave any."""
    for variable in ("STATE_DIRECTORY", "RUNTIME_DIRECTORY"):
        os.environ[variable] = ENVIRON[variable] = str(tmp_path_factory.mktemp(variable))


@pytest.fixture
def folder() -> Iterator[Path]:
    """Return a folder of this test that other users may enter, with a name short enough for sockets."""
    with tempfile.TemporaryDirectory(prefix="consul-supervisor-") as name:
        made = Path(name)
        made.chmod(0o755)
        yield made


@pytest.fixture
def agent(tmp_path: Path) -> Iterator[Agent]:
    """Return a ``-dev`` agent of this test alone, which may stop, kill, freeze and fill it."""
    with Agent(tmp_path / "consul") as running:
        yield running


@pytest.fixture
def persistent_agent(tmp_path: Path) -> Iterator[Agent]:
    """Return a server of this test alone that keeps its state over restarts."""
    with Agent(tmp_path / "consul", persistent=True) as running:
        yield running


@pytest.fixture(scope="session")
def shared_agent(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Agent]:
    """Return a ``-dev`` agent for all tests of this worker: use your own keys (``unique``), never stop it."""
    with Agent(tmp_path_factory.mktemp("shared") / "consul") as running:
        yield running


@pytest.fixture(scope="session")
def shared_client(shared_agent: Agent, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Agent]:
    """Return a client agent of the shared agent, as users run one on each machine."""
    with Agent(tmp_path_factory.mktemp("client") / "consul", servers=shared_agent) as running:
        yield running


@pytest.fixture(params=EACH_WAY)
def either_agent(request: pytest.FixtureRequest) -> Agent:
    """Return a server, and in a second run of the test a client agent of that server."""
    name = "shared_agent" if request.param == WAYS[0] else "shared_client"
    agent: Agent = request.getfixturevalue(name)
    return agent


@pytest.fixture
def unique(tmp_path: Path) -> str:
    """Return a name for this test's keys and sessions on ``shared_agent``, which an election may have."""
    return tmp_path.name.lower()


@pytest.fixture
def hangs() -> Iterator[Callable[[Path], None]]:
    """Return a function that makes a script whose open hangs, as on a file system that does not answer.

    The kernel waits until the holder of a lease gives it up, or for some 45 s.
    """
    former = signal.signal(signal.SIGIO, signal.SIG_IGN)
    held: list[int] = []

    def make(path: Path) -> None:
        path.write_text("#!/bin/sh\n")
        path.chmod(0o755)
        held.append(os.open(path, os.O_RDWR))
        fcntl.fcntl(held[-1], fcntl.F_SETLEASE, fcntl.F_WRLCK)

    yield make
    for fd in held:
        os.close(fd)
    signal.signal(signal.SIGIO, former)
