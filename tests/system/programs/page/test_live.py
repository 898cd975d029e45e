"""The page beside real supervisors on a real Consul: it shows their changes without a reload."""

import json

from tests.consul.elections.scene import Scene
from tests.consul.web.reader import Reader
from tests.support.browser import Browser
from tests.support.consul import HOST
from tests.support.supervisor import Supervisor
from tests.system.programs.page.looking import bar, opened, row

UNLOADED = "window.sameDocument === true"


def look(browser: Browser, node: Supervisor) -> Browser:
    """Open the node's page and mark it, because a page that is loaded again has no mark."""
    opened(browser, f"http://{HOST}:{Reader(node).port}/")
    browser.run("window.sameDocument = true; 0")
    return browser


def wait_role(page: Browser, scene: Scene, role: str) -> None:
    page.wait(f"{row(scene.name)}.dataset.role === {json.dumps(role)}")


def lease_shown(page: Browser, scene: Scene) -> bool:
    return bool(page.run(f"{bar(scene.name)}.checkVisibility()"))


def test_a_failover_is_in_the_time_line_with_its_hooks(scene: Scene, browser: Browser) -> None:
    """Node a is killed, so its tenure ends with its session; the page of b shows how b took over."""
    scene.leader("a")
    scene.waiter("b", on_acquire=[scene.hook("b", "acquire", "sleep 0.3"), scene.hook("b", "acquire-2")])
    page = look(browser, scene.nodes["b"])
    wait_role(page, scene, "waiting")
    assert not lease_shown(page, scene)
    scene.kill("a")
    wait_role(page, scene, "holding")
    assert lease_shown(page, scene)
    assert page.run(f"{row(scene.name)}.querySelector('.leader').textContent") == "b"
    page.wait("document.getElementById('news').textContent.includes('is holding: acquired')")
    acquire = f"""[...{row(scene.name)}.querySelectorAll('ol > li')]
      .find((step) => step.querySelector('b').textContent === 'acquire')"""
    page.wait(f"{acquire}?.querySelectorAll('.bar[data-result=ok]').length === 2")
    drawn = "(bar) => [bar.offsetLeft, bar.offsetWidth, bar.title]"
    first, second = page.run(f"[...{acquire}.querySelectorAll('.bar')].map({drawn})")
    rounding = 1 + first[1] / 100  # pixels: times have whole milliseconds, and the line has some 300 of them
    assert first[0] + first[1] <= second[0] + rounding and first[1] > second[1], (
        "to scale, one after the other"
    )
    assert first[2].startswith("on_acquire[0] ok") and second[2].startswith("on_acquire[1] ok")
    assert page.run(UNLOADED)
