"""A browser for the tests of a worker, and the pages that it opens.

Each test gets the browser without anything of the test before it.
"""

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from docs.page import fleet, status
from tests.consul.elections.scene import Scene
from tests.consul.web.conftest import WebScene
from tests.support.browser import Browser
from tests.support.canned import CannedDaemon
from tests.support.consul import Agent
from tests.support.staging import staged
from tests.system.programs.page.looking import opened, said


@pytest.fixture(scope="session")
def chromium(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    """Yield one Chromium for all tests of this worker; tests use ``browser``."""
    with Browser(tmp_path_factory.mktemp("chromium")) as running:
        yield running


@pytest.fixture
def browser(chromium: Browser) -> Iterator[Browser]:
    """Yield an empty page of 1200 by 800; assert that its script and its policy reported no fault."""
    chromium.reset()
    yield chromium
    assert chromium.told("Runtime.exceptionThrown") == []
    refused = [
        told["entry"] for told in chromium.told("Log.entryAdded") if told["entry"]["source"] == "security"
    ]
    assert refused == []


@pytest.fixture
def daemon() -> Iterator[CannedDaemon]:
    """Yield a daemon with three elections and a semaphore; one election is stuck."""
    with CannedDaemon(status(datetime.now(UTC))) as running:
        yield running


@pytest.fixture
def fleet_daemon(daemon: CannedDaemon) -> CannedDaemon:
    said(daemon)["consul"]["fleet"] = "consul-supervisor"
    daemon.fleet = fleet()
    return daemon


@pytest.fixture
def page(browser: Browser, daemon: CannedDaemon) -> Browser:
    """Return that daemon's page when its first answer is shown."""
    return opened(browser, daemon.url)


@pytest.fixture
def scene(
    shared_agent: Agent, tmp_path: Path, unique: str, request: pytest.FixtureRequest
) -> Iterator[Scene]:
    """Yield real supervisors that listen, on the shared agent."""
    with staged(WebScene(shared_agent, tmp_path / "nodes", unique), request) as made:
        yield made
