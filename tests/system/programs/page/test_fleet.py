"""The page with a fleet: below each item its other nodes, whatever they say."""

from itertools import cycle
from typing import Any

import pytest

from tests.support.browser import Browser
from tests.support.canned import CannedDaemon
from tests.system.programs.page.looking import OPEN_ALL, POLLED, opened, row, said
from tests.system.programs.page.test_access import assert_accessible
from tests.system.programs.page.test_status import HOSTILE

LISTED = f"[...{row('namenode')}.querySelectorAll('.fleet li')]"
ASKED = "performance.getEntriesByType('resource').filter(({ name }) => name.endsWith('v1/fleet')).length"


def lines(browser: Browser) -> list[Any]:
    """Return the other nodes of the item: mood, text, and address."""
    browser.wait(f"{LISTED}.length")
    told = "(each) => [each.dataset.mood, each.textContent, each.querySelector('a')?.href ?? '']"
    return list(browser.run(f"{LISTED}.map({told})"))


def nodes(daemon: CannedDaemon) -> list[dict[str, Any]]:
    """Return the nodes that the daemon tells of, so that a test can change them."""
    assert daemon.fleet is not None
    return list(daemon.fleet["nodes"])


def test_an_item_shows_its_other_nodes_and_links_to_their_pages(
    browser: Browser, fleet_daemon: CannedDaemon
) -> None:
    nodes(fleet_daemon)[0]["page"] = None
    opened(browser, fleet_daemon.url)
    assert lines(browser) == [
        ["calm", "vm2 ● holding token 8", ""],
        ["trouble", "vm3 ✕ does not answer (TTL expired); last ○ waiting", "http://vm3:8555/"],
        [
            "attention",
            "vm4 ‖ paused by root (kernel); not healthy: vm4: NOT HEALTHY",
            "http://vm4:8555/",
        ],
    ]
    assert browser.run(f"{row('redis')}.querySelectorAll('.fleet li').length") == 0
    browser.wait(f"{POLLED} > 5")
    assert browser.run(ASKED) == 1
    fleet_daemon.fleet = None  # the status goes on when this has no answer
    browser.run("seen.fleetAsked = -FLEET_MS")
    browser.wait(f"{LISTED}[0]?.textContent.includes('does not tell')")


def test_consul_that_does_not_show_the_nodes_is_told_and_a_page_without_a_fleet_asks_nothing(
    browser: Browser, fleet_daemon: CannedDaemon
) -> None:
    fleet_daemon.fleet = {"version": 1, "why": f"no right {HOSTILE}", "nodes": []}
    opened(browser, fleet_daemon.url)
    assert lines(browser) == [["calm", f"other nodes are not known: no right {HOSTILE}", ""]]
    said(fleet_daemon)["consul"]["fleet"] = None
    browser.wait(f"{LISTED}.length === 0")
    opened(browser, fleet_daemon.url)
    browser.wait(f"{POLLED} > 3")
    assert browser.run(ASKED) == 0


def test_what_other_nodes_say_stays_text(browser: Browser, fleet_daemon: CannedDaemon) -> None:
    told = {"role": HOSTILE, "detail": HOSTILE}
    addresses = cycle(("javascript:hurt=1", "http://u:p@x/", HOSTILE))
    for one, address in zip(nodes(fleet_daemon), addresses, strict=False):
        one |= {"node": HOSTILE, "says": HOSTILE, "page": address, "status": HOSTILE}
        one["items"] = {"namenode": told, "__proto__": told, HOSTILE: told}
    opened(browser, fleet_daemon.url)
    assert [each for _, _, each in lines(browser)] == [""] * 4
    assert browser.run("window.hurt") is None
    assert browser.run("document.querySelectorAll('img, body script + script, iframe').length") == 0


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_nodes_can_be_read_on_a_phone(browser: Browser, fleet_daemon: CannedDaemon, scheme: str) -> None:
    nodes(fleet_daemon)[1]["says"] = "x" * 512
    browser.prefer(color_scheme=scheme)
    browser.resize(390, 800, phone=True)
    browser.call("Page.setBypassCSP", enabled=True)  # axe needs it; the page does not
    opened(browser, fleet_daemon.url)
    browser.run(OPEN_ALL)
    assert len(lines(browser)) == 3
    assert browser.run("document.documentElement.scrollWidth") <= 390
    assert_accessible(browser)
