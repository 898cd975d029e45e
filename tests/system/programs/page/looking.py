"""How the tests look at the page: expressions that the page evaluates, by the names in its script."""

import json
from typing import Any

from tests.support.browser import Browser
from tests.support.canned import CannedDaemon

ROWS = "document.querySelectorAll('#list > li').length"
OPEN_ALL = "document.querySelectorAll('details').forEach((each) => { each.open = true })"
POLLED = "performance.getEntriesByType('resource').length"  # how often it has asked


def opened(browser: Browser, url: str) -> Browser:
    """The page at this address, once it shows an answer."""
    browser.open(url)
    browser.wait(ROWS)
    return browser


def said(daemon: CannedDaemon) -> dict[str, Any]:
    """What that daemon says, to be changed by the test."""
    assert daemon.status is not None
    return daemon.status


def row(name: str) -> str:
    """The row of an item."""
    return f"rows.get({json.dumps(name)})?.root"


def bar(name: str) -> str:
    """The bar of its lease."""
    return f"{row(name)}.querySelector('[data-is=bar]')"


def names(browser: Browser) -> list[str]:
    """The items that are seen, from the top."""
    shown = "[...document.querySelectorAll('#list > li:not([hidden]) [data-is=name]')]"
    return list(browser.run(f"{shown}.map((each) => each.textContent)"))
