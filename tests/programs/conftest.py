"""A browser for the tests of a worker: each test gets it with nothing of the one before."""

from collections.abc import Iterator

import pytest

from tests.support.browser import Browser


@pytest.fixture(scope="session")
def chromium(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    """One Chromium for all tests of this worker: use ``browser``."""
    with Browser(tmp_path_factory.mktemp("chromium")) as running:
        yield running


@pytest.fixture
def browser(chromium: Browser) -> Iterator[Browser]:
    """An empty page of 1200 by 800; in the end nothing was thrown in it and nothing refused by its policy."""
    chromium.reset()
    yield chromium
    assert chromium.told("Runtime.exceptionThrown") == []
    refused = [
        said["entry"] for said in chromium.told("Log.entryAdded") if said["entry"]["source"] == "security"
    ]
    assert refused == []
