"""The page works with keyboards, screen readers, phones, in dark mode, and with a hundred items."""

import copy
from datetime import UTC, datetime
from importlib import resources
from pathlib import Path
from typing import Any

import pytest

from docs.page import item
from tests.support.browser import Browser
from tests.support.canned import CannedDaemon
from tests.system.programs.page.looking import OPEN_ALL, POLLED, ROWS, names, opened, row, said

CONTRAST = (Path(__file__).parent / "contrast.js").read_text()


def silence(page: Browser, daemon: CannedDaemon) -> None:
    daemon.status = None
    page.wait("document.documentElement.dataset.state === 'silent'")


def all_open(page: Browser, daemon: CannedDaemon) -> None:
    said(daemon)["troubles"].append("the token is refused")
    said(daemon)["items"][0] |= {
        "lease_left_s": 9.0,
        "lease_runs_out": True,
        "warnings": ["its lease runs out"],
    }
    said(daemon)["items"][1]["warnings"] = ["the limit differs"]
    said(daemon)["items"][1]["leader"] = '{"Node": "vm4", "Url": "http://vm4:8555/"}'
    said(daemon)["items"][3]["transitions"] = []
    page.wait(f"{row('namenode')}.dataset.mood === 'attention'")
    page.run(OPEN_ALL)


def assert_accessible(page: Browser) -> None:
    """Check the contrast of each text, and that axe finds no fault."""
    assert page.run(CONTRAST) == []
    page.run(resources.files("axe_core_python").joinpath("axe.min.js").read_text() + ";0")
    found = page.run("axe.run().then((result) => result.violations)")
    assert [(each["id"], [node["html"] for node in each["nodes"]]) for each in found] == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("state", [all_open, silence])
def test_the_page_has_no_fault_of_accessibility(
    browser: Browser, daemon: CannedDaemon, scheme: str, state: Any
) -> None:
    """Axe finds no fault, and every text has the contrast of WCAG AA, also on a hatched ground."""
    browser.prefer(color_scheme=scheme)
    browser.call("Page.setBypassCSP", enabled=True)  # axe needs it; the page does not
    opened(browser, daemon.url)
    state(browser, daemon)
    assert browser.run(f"matchMedia('(prefers-color-scheme: {scheme})').matches")
    assert_accessible(browser)


def test_the_keyboard_reaches_everything(page: Browser, daemon: CannedDaemon) -> None:
    """The focus follows the order of reading, and is visible everywhere."""
    said(daemon)["items"][1]["leader"] = '{"Node": "vm4", "Url": "http://vm4:8555/"}'
    page.wait(f"{row('activemq')}.querySelector('a') !== null")
    wanted = page.run(
        """[...document.querySelectorAll('a, input, button, summary')]
        .filter((each) => each.checkVisibility()).map((each) => each.innerText || each.id)"""
    )
    reached = []
    for _ in wanted:
        page.press("Tab")
        reached.append(page.run("document.activeElement.innerText || document.activeElement.id"))
        assert page.run("getComputedStyle(document.activeElement).outlineStyle") == "solid"
    assert len(reached) > 12 and [first(text) for text in reached] == [first(text) for text in wanted]


def first(text: str) -> str:
    return " ".join(text.split()[:3])


def test_a_change_of_role_is_announced_and_a_tick_is_not(page: Browser, daemon: CannedDaemon) -> None:
    page.run(
        """window.told = [];
        const tell = ({ target }) => told.push(target.textContent);
        const watcher = new MutationObserver((all) => all.forEach(tell));
        for (const live of document.querySelectorAll('[role=status], [role=alert], [aria-live]'))
          watcher.observe(live, { childList: true, characterData: true, subtree: true });"""
    )
    page.wait(f"{POLLED} > 3")
    assert page.run("told") == []
    said(daemon)["items"][1].update(role="holding", reason="acquired")
    page.wait("told.length")
    page.wait(f"{POLLED} > {page.run(POLLED) + 1}")
    assert page.run("told") == ["activemq is holding: acquired"]


@pytest.mark.parametrize("width", [320, 700, 1200])
def test_the_page_fits_its_width(browser: Browser, daemon: CannedDaemon, width: int) -> None:
    """Nothing scrolls sideways, however long the words are."""
    told = said(daemon)
    told["troubles"].append("x" * 300)
    told["items"][0] |= {"name": "n" * 63, "leader": "v" * 1024, "key": "k" * 400, "warnings": ["w" * 300]}
    told["items"][3]["holders"] = [{"session": "s" * 36, "value": "h" * 1024} for _ in range(10)]
    browser.resize(width, 640, phone=width < 400)
    opened(browser, daemon.url)
    browser.run(OPEN_ALL)
    assert browser.run("document.documentElement.scrollWidth") <= width
    beyond = browser.run(
        """[...document.querySelectorAll('main *:not(bdi)')]
        .filter((each) => each.checkVisibility() && each.getBoundingClientRect().right > innerWidth)
        .map((each) => each.outerHTML.slice(0, 90))"""
    )
    assert beyond == []


def test_of_a_hundred_items_only_those_in_trouble_stand_out(browser: Browser, daemon: CannedDaemon) -> None:
    now = datetime.now(UTC)
    calm = [item(now, f"calm-{n:02d}", "waiting", 60, leader="vm1") for n in range(98)]
    redis = said(daemon)["items"][2]
    said(daemon)["items"] = [*calm, redis, item(now, "empty", "waiting", 60, warnings=["nobody leads"])]
    opened(browser, daemon.url)
    assert names(browser)[:3] == ["redis", "empty", "calm-00"] and len(names(browser)) == 100
    assert browser.run("[...document.querySelectorAll('#list > li > details[open]')].length") == 1
    one = copy.deepcopy(calm[50])
    said(daemon)["items"].remove(calm[50])
    browser.wait(f"{ROWS} === 99")
    assert one["name"] not in names(browser)
