"""Expressions that the page evaluates, by the names in its script: the tests read the page with them."""

import json
from typing import Any

from tests.support.browser import Browser
from tests.support.canned import CannedDaemon

ROWS = "document.querySelectorAll('#list > li').length"
OPEN_ALL = "document.querySelectorAll('details').forEach((each) => { each.open = true })"
POLLED = "performance.getEntriesByType('resource').length"  # how many requests the page has sent


def opened(browser: Browser, url: str) -> Browser:
    """Open the page at this address and return it when it shows an answer."""
    browser.open(url)
    browser.wait(ROWS)
    return browser


def said(daemon: CannedDaemon) -> dict[str, Any]:
    """Return the status that the daemon gives, so that a test can change it."""
    assert daemon.status is not None
    return daemon.status


def row(name: str) -> str:
    """Return the expression of an item's row."""
    return f"rows.get({json.dumps(name)})?.root"


def bar(name: str) -> str:
    """Return the expression of an item's lease bar."""
    return f"{row(name)}.querySelector('[data-is=bar]')"


def names(browser: Browser) -> list[str]:
    """Return the visible items, from the top."""
    shown = "[...document.querySelectorAll('#list > li:not([hidden]) [data-is=name]')]"
    return list(browser.run(f"{shown}.map((each) => each.textContent)"))
