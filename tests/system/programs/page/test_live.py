"""The page beside real supervisors on a real Consul: it shows their changes without a reload."""

import json
import signal
from datetime import UTC, datetime

from docs.page import status
from tests.consul.elections.scene import Scene
from tests.consul.web.reader import Reader
from tests.support.browser import Browser
from tests.support.consul import HOST
from tests.support.supervisor import Supervisor, until
from tests.system.programs.page.looking import bar, opened, row

UNLOADED = "window.sameDocument === true"


def look(browser: Browser, node: Supervisor) -> Browser:
    """Open the node's page and mark it, because a page that is loaded again has no mark."""
    opened(browser, f"http://{HOST}:{Reader(node).port}/")
    browser.run("window.sameDocument = true; 0")
    return browser


def wait_role(page: Browser, scene: Scene, role: str) -> None:
    page.wait(f"{row(scene.name)}.dataset.role === {json.dumps(role)}")


def test_an_election_won_shows_up_without_a_reload(scene: Scene, browser: Browser) -> None:
    scene.leader("a")
    page = look(browser, scene.waiter("b"))
    wait_role(page, scene, "waiting")
    assert "for" in page.run(f"{row(scene.name)}.innerText") and not lease_shown(page, scene)
    scene.nodes["a"].stop()
    wait_role(page, scene, "holding")
    assert lease_shown(page, scene)
    assert page.run(f"{row(scene.name)}.querySelector('.leader').textContent") == "b"
    page.wait("document.getElementById('news').textContent.includes('is holding: acquired')")
    assert page.run(UNLOADED)


def lease_shown(page: Browser, scene: Scene) -> bool:
    return bool(page.run(f"{bar(scene.name)}.checkVisibility()"))


def test_the_lease_of_a_leader_runs_and_is_renewed(scene: Scene, browser: Browser) -> None:
    """The bar falls between two confirmations of Consul, and rises with each."""
    page = look(browser, scene.leader("a", session={"lock_delay": "20s", "ttl": "10s"}))
    wait_role(page, scene, "holding")
    width = f"{bar(scene.name)}.getBoundingClientRect().width"
    directions = page.run(
        f"""new Promise((done) => {{
          const seen = new Set();
          let before = {width};
          const look = () => {{
            const now = {width};
            if (now !== before) seen.add(now < before ? 'falls' : 'rises');
            before = now;
            seen.size < 2 ? requestAnimationFrame(look) : done([...seen].sort());
          }};
          look();
        }})"""
    )
    assert directions == ["falls", "rises"]


def test_a_failover_is_in_the_time_line_with_its_hooks(scene: Scene, browser: Browser) -> None:
    """Node a is killed, so its tenure ends with its session; the page of b shows how b took over."""
    scene.leader("a")
    scene.waiter("b", on_acquire=[scene.hook("b", "acquire", "sleep 0.3"), scene.hook("b", "acquire-2")])
    page = look(browser, scene.nodes["b"])
    scene.kill("a")
    wait_role(page, scene, "holding")
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


def test_the_time_line_survives_a_restart(scene: Scene, browser: Browser) -> None:
    scene.restarts = True
    node = scene.leader("a")
    node.stop()
    node.start()
    until(lambda: len(node.lines("http", level="info")) == 2, "it listens again")
    page = look(browser, node)
    lost = f"[...{row(scene.name)}.querySelectorAll('ol > li')].map((step) => step.innerText).join('|')"
    page.wait(f"{lost}.includes('shutdown')")
    page.run("document.getElementById('events').querySelector('summary').click()")
    page.wait("document.getElementById('events-list').innerText.includes('supervisor stopped')")


def test_a_killed_daemon_is_shown_as_gone(scene: Scene, browser: Browser) -> None:
    page = look(browser, scene.leader("a"))
    wait_role(page, scene, "holding")
    scene.kill("a")
    page.wait("document.body.innerText.includes('has not answered since')")
    assert not lease_shown(page, scene)
    assert page.run("document.title").startswith("? No answer")


def test_a_stopped_daemon_is_shown_until_it_goes_on(scene: Scene, browser: Browser) -> None:
    """The daemon keeps its connections, so only the missing answers show that it is stopped."""
    node = scene.leader("a", session={"lock_delay": "40s", "ttl": "20s"})
    page = look(browser, node)
    wait_role(page, scene, "holding")
    node.signal(signal.SIGSTOP)
    page.wait("document.body.innerText.includes('no answer within 3 s')")
    assert not lease_shown(page, scene)
    node.signal(signal.SIGCONT)
    page.wait("document.documentElement.dataset.state === 'live'")
    assert page.run(UNLOADED)


def test_a_hostile_leader_s_value_stays_text(scene: Scene, browser: Browser) -> None:
    """Another node of the cluster writes the value into Consul."""
    value = "<img src=x onerror='window.hurt = 1'>"
    scene.leader("a", value=value)
    page = look(browser, scene.node("b"))
    page.wait(f"{row(scene.name)}.querySelector('.leader').textContent === {json.dumps(value)}")
    assert page.run("document.images.length") == 0 and page.run("window.hurt") is None


def test_the_made_up_status_has_the_shape_of_a_real_one(scene: Scene) -> None:
    """Otherwise the tests with that status would show nothing."""

    real, made = Reader(scene.leader("a")).status(), status(datetime.now(UTC))
    assert set(real) == set(made)
    for part in ("daemon", "consul"):
        assert set(real[part]) == set(made[part])
    assert set(real["items"][0]) == set(made["items"][0])
    assert set(real["items"][0]["last_hook"]) == set(made["items"][0]["last_hook"])
    (ours, theirs) = (each["items"][0]["transitions"][0] for each in (real, made))
    assert set(ours) == set(theirs) and set(ours["hooks"][0]) == set(theirs["hooks"][0])
