"""The page's view of a status: rows, leases, time lines, silence, hostile text."""

import json
import re
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
import requests

from docs.page import item, status
from supervisor.adapters.consul.maintenance import shown as shown_maintenance
from supervisor.core.outcomes import InMaintenance
from supervisor.core.requests import ReadMaintenance
from supervisor.reporting.web.routes import load_page
from tests.support.browser import Browser
from tests.support.canned import CannedDaemon
from tests.system.programs.page.looking import OPEN_ALL, POLLED, bar, names, opened, row, said

OFF = "`consul-supervisor confirm-off activemq`"
OFF_ALL = "`consul-supervisor confirm-off --all n1`"
MAINTENANCE = "this node is in Consul's maintenance mode"
EVENTS = "document.getElementById('events')"
HOSTILE = '<img src=x onerror="window.hurt=1"><script>window.hurt=1</script>\u202e{{7*7}}'


# --- what it shows ------------------------------------------------------------------------------------


def test_the_page_shows_each_item_with_role_leader_and_lease(page: Browser) -> None:
    text = page.run(f"{row('namenode')}.innerText")
    leader = '{"Node": "vm7", "Port": 8020}'
    for shown in ("namenode", "election", "holding", "vm7", "lease 2", leader, "48213"):
        assert shown in text
    assert "2 of 3: vm2, vm7" in page.run(f"{row('rebuild')}.innerText")
    assert "lease" not in page.run(f"{row('activemq')}.innerText")


def test_trouble_comes_first_and_is_in_the_title(page: Browser, daemon: CannedDaemon) -> None:
    assert names(page) == ["redis", "activemq", "namenode", "rebuild"]
    assert page.run("document.title") == "✕ 1 trouble · vm7"
    assert "redis is stuck" in page.run(f"{row('redis')}.innerText")
    well = status(datetime.now(UTC))
    well |= {
        "healthy": True,
        "troubles": [],
        "items": [one for one in well["items"] if one["name"] != "redis"],
    }
    daemon.status = well
    page.wait("document.title === '● All well · vm7'")
    assert names(page) == ["activemq", "namenode", "rebuild"]


def test_what_belongs_to_no_item_is_shown_above_all(page: Browser, daemon: CannedDaemon) -> None:
    above = "document.getElementById('troubles')"
    said(daemon)["troubles"].append("the token is refused")
    page.wait(f"{above}.innerText.includes('the token is refused')")
    assert page.run("document.title") == "✕ 2 troubles · vm7"
    well = status(datetime.now(UTC))
    items = [one for one in well["items"] if one["name"] != "redis"]
    daemon.status = well | {"healthy": True, "troubles": [], "warnings": ["the disk is full"], "items": items}
    page.wait(f"{above}.innerText.includes('the disk is full')")
    assert page.run("document.title") == "▲ 1 warning · vm7"
    assert page.run(f"{above}.dataset.mood") == "attention"


def test_an_error_that_is_over_is_shown_in_the_past_and_then_dropped(
    page: Browser, daemon: CannedDaemon
) -> None:
    told = said(daemon)
    began, over = (datetime.now(UTC) - timedelta(seconds=ago_s) for ago_s in (400, 10))
    error = {"at": iso(began), "text": "Consul did not answer: refused", "over_at": iso(over)}
    told["items"][1]["last_error"] = error
    summary = f"{row('activemq')}.querySelector('summary').innerText"
    page.wait(f"{summary}.includes('Consul did not answer')")
    assert f"{local(page, began)}, over {local(page, over)}: Consul did not answer" in page.run(summary)
    assert page.run(f"{row('activemq')}.dataset.mood") == "calm"  # as the command, which says healthy
    told["items"][1]["last_error"] = {**error, "over_at": iso(began)}
    page.wait(f"!{summary}.includes('Consul did not answer')")


def iso(time: datetime) -> str:
    """The time as the daemon writes it."""
    return time.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def local(page: Browser, time: datetime) -> str:
    """The time as the page shows it."""
    return str(page.run(f"clock({json.dumps(time.isoformat())})"))


@pytest.mark.parametrize(
    ("changes", "command"),
    [
        ({"role": "acquiring", "warnings": [f"waits for n1 …: {OFF}"]}, "confirm-off activemq"),
        ({"role": "acquiring", "warnings": [f"waits for n1 …: {OFF_ALL}"]}, "confirm-off activemq"),
        ({"role": "acquiring", "warnings": [f"fence failed: waits for n1 …: {OFF}"]}, ""),
        ({"role": "acquiring", "warnings": ["waits for n1 no more (said)"]}, ""),
        ({"role": "waiting", "warnings": ["does not try, because the file says …"]}, "resume activemq"),
        ({"role": "paused", "paused": True, "paused_everywhere": "paused …"}, "resume activemq --everywhere"),
        ({"role": "waiting", "paused_everywhere": "paused …"}, "resume activemq --everywhere"),
        ({"role": "stuck", "paused_everywhere": "paused …"}, "recover activemq"),
        ({"role": "holding", "warnings": ["its slot has no number, and …"]}, "step-down activemq"),
        ({"role": "waiting", "warnings": ["on_change[0] failed: does not try, because"]}, ""),
        ({"role": "stuck"}, "recover activemq"),
        ({"role": "holding", "paused": True}, "resume activemq"),
        ({"role": "resting"}, "resume activemq"),
        ({"role": "ineligible", "warnings": ["run: rm; `rm`"]}, ""),
        ({"role": "ineligible", "warnings": [f"{MAINTENANCE}: disk"]}, "consul maint -disable"),
    ],
)
def test_the_command_of_a_state_can_be_copied(
    page: Browser, daemon: CannedDaemon, changes: dict[str, Any], command: str
) -> None:
    """It follows from the daemon's own words; a hook or another node that words it so gets no button."""
    said(daemon)["items"][1] |= {"paused": False, "paused_everywhere": None, "reason": "changed", **changes}
    page.wait(f"{row('activemq')}.querySelector('[data-is=facts]').textContent.includes('changed')")
    own = "" if not command or command.startswith("consul ") else "consul-supervisor "
    part = f"{row('activemq')}.querySelector('[data-is=command]')"
    shown = f"[{part}.textContent, {part}.checkVisibility()]"
    assert page.run(shown) == [own + command, bool(command)]
    daemon.status = None
    page.wait(f"!{part}.checkVisibility()")


def test_a_leader_s_plain_name_and_a_whole_reason_are_shown(page: Browser, daemon: CannedDaemon) -> None:
    one = said(daemon)["items"][1]
    one["leader"] = '{"Node":"vm1"}'
    one["transitions"][0]["reason"] = reason = "waits for the former holder, " * 4
    facts = f"{row('activemq')}.querySelector('[data-is=facts]').innerText"
    page.wait(f"{row('activemq')}.textContent.includes({json.dumps(reason)})")
    assert "leadervm1\n" in page.run(facts) and "{" not in page.run(facts)
    what = f"{row('activemq')}.querySelector('.what')"
    assert page.run(f"{what}.scrollWidth <= {what}.clientWidth"), "nothing is cut"


def test_the_warnings_are_those_of_the_daemon_and_no_others(page: Browser, daemon: CannedDaemon) -> None:
    """So the page and `consul-supervisor status` never disagree."""
    said(daemon)["items"][1] |= {"leader": None, "role": "ineligible", "paused": True, "command": None}
    page.wait(f"{row('activemq')}.dataset.role === 'ineligible'")
    assert page.run(f"{row('activemq')}.dataset.mood") == "calm"
    said(daemon)["items"][1]["warnings"] = ["nobody leads", "not fit: exit 1"]
    page.wait(f"{row('activemq')}.dataset.mood === 'attention'")
    notes = f"{row('activemq')}.querySelectorAll('summary [data-is=notes] > span')"
    assert page.run(f"[...{notes}].map((each) => each.innerText)") == ["▲ nobody leads", "▲ not fit: exit 1"]


def outage(items: int, now: datetime, *, over: bool = False) -> dict[str, Any]:
    told = status(now)
    told["items"] = [item(now, f"db-{n:02d}", "waiting", 60, leader="vm1") for n in range(items)]
    silent = "cannot be taken over: Consul's servers have not answered for more than 20s"
    told["troubles"] = [] if over else [f"{one['name']} {silent}" for one in told["items"]]
    told["healthy"] = over
    for number, one in enumerate(told["items"]):
        at = iso(now - timedelta(seconds=60 + number))
        one["warnings"] = [] if over else [f"who holds is unknown since {at}"]
        one["last_error"] = {"at": at, "text": "Consul did not answer", "over_at": at if over else None}
    return told


ABOVE = "[...document.querySelectorAll('#troubles-list li')].map((each) => each.innerText)"
OPENED = "document.querySelectorAll('#list > li > details[open]').length"


def test_one_cause_of_many_items_is_told_once_above_them(browser: Browser, daemon: CannedDaemon) -> None:
    """No row is opened for it, and each row tells it when it is opened."""
    now = datetime.now(UTC).replace(microsecond=0)
    daemon.status = outage(54, now)
    opened(browser, daemon.url)
    trouble, unknown, error = browser.run(ABOVE)
    assert trouble == "✕ 54 items: cannot be taken over: Consul's servers have not answered for more than 20s"
    first, last = (local(browser, now - timedelta(seconds=ago_s)) for ago_s in (113, 60))
    assert unknown == f"▲ 54 items: who holds is unknown since {first} to {last}"
    assert error == f"▲ 54 items: {first} to {last}: Consul did not answer"
    summary = f"{row('db-07')}.querySelector('summary').innerText"
    assert browser.run(OPENED) == 0 and "taken over" not in browser.run(summary)
    assert browser.run(f"{row('db-07')}.dataset.mood") == "trouble"
    browser.run(f"{row('db-07')}.querySelector('summary').click()")
    assert "taken over" in browser.run(summary) and "unknown since" in browser.run(summary)
    said(daemon)["troubles"].append("db-03 is stuck: on_lose[0] failed: exit 1")
    browser.wait(f"{row('db-03')}.querySelector('details').open")
    assert browser.run(OPENED) == 2
    daemon.status = outage(54, now, over=True)
    browser.wait("document.getElementById('troubles').dataset.mood === 'calm'")
    assert browser.run(ABOVE) == [
        f"● 54 items: {first} to {last}, over {first} to {last}: Consul did not answer"
    ]
    daemon.status = outage(3, now)  # a cause of few items stays with them
    browser.wait(f"{OPENED} === 3")
    assert browser.run(ABOVE) == []


def test_times_are_those_of_the_browser_and_in_one_piece(browser: Browser, daemon: CannedDaemon) -> None:
    """Also within texts of the daemon, on a phone, and never within a value of Consul."""
    at = "2025-01-26T11:54:36.071Z"
    told = said(daemon)
    told["troubles"].append(f"this process runs by the configuration of {at}, because the file is broken")
    one = told["items"][1]
    one |= {"warnings": [f"rests until {at} after step-down"], "leader": at, "since": at}
    one["last_error"] = {"at": at, "text": "broken", "over_at": None}
    browser.resize(390, 800, phone=True)
    opened(browser, daemon.url)
    browser.run(OPEN_ALL)
    text, shown = browser.text(), local(browser, datetime.fromisoformat(at))
    assert f"rests until {shown} after step-down" in text and f"the configuration of {shown}, because" in text
    assert shown.startswith("Jan\u00a026\u00a0") and text.count(shown) >= 5
    assert text.count(at) == 2  # the leader's own value, in the row and among the facts


def links(browser: Browser, name: str) -> list[list[str]]:
    """The links in the row of an item, each with its text."""
    found = f"[...{row(name)}.querySelectorAll('a')].map((each) => [each.textContent, each.href])"
    return list(browser.run(found))


def test_the_pages_of_other_holders_are_linked(page: Browser, daemon: CannedDaemon) -> None:
    """Those of this node's own tenures are not, because the reader is there."""
    own, other = ({"Node": node, "Url": f"http://{node}:8555/"} for node in ("vm7", "vm4"))
    items = said(daemon)["items"]
    items[0]["leader"] = json.dumps(own)
    items[1]["leader"] = json.dumps(other)
    items[3]["holders"] = [
        {"session": items[3]["session"], "value": json.dumps(own)},
        {"session": "s", "value": json.dumps(other)},
    ]
    page.wait(f"{row('activemq')}.querySelector('a') !== null")
    assert links(page, "activemq") == links(page, "rebuild") == [["vm4", "http://vm4:8555/"]]
    assert links(page, "namenode") == []


@pytest.mark.parametrize(
    "url",
    [
        "javascript:window.hurt=1",
        " java\nscript:window.hurt=1",
        "data:text/html,<script>window.hurt=1</script>",
        "file:///etc/passwd",
        "/v1/status",
        "http://root:secret@vm4/",
        7,
    ],
    ids=str,
)
def test_a_url_that_is_not_safe_is_no_link(browser: Browser, daemon: CannedDaemon, url: object) -> None:
    said(daemon)["items"][1]["leader"] = json.dumps({"Node": "vm4", "Url": url})
    opened(browser, daemon.url)
    browser.wait(f"{row('activemq')}.innerText.includes('vm4')")
    assert links(browser, "activemq") == [] and browser.run("window.hurt") is None


def test_the_notice_of_the_daemon_begins_as_the_page_expects() -> None:
    """The page knows the maintenance mode by these words."""
    response = requests.Response()
    response.status_code, response._content = 200, b'{"_node_maintenance": {"Notes": "disk"}}'
    mode = shown_maintenance(ReadMaintenance("n", 0.0, 1.0), response)
    (begin,) = re.findall(r'const MAINTENANCE = "(.+?)";', load_page().body.decode())
    assert isinstance(mode, InMaintenance) and mode.why.startswith(begin)


COPY = f"{row('redis')}.querySelector('[data-is=copy]')"
SELECTED = "getSelection().toString()"


def test_a_command_is_copied_by_keyboard(page: Browser) -> None:
    page.run("navigator.clipboard.writeText = async (text) => { window.clipboard = text }; 0")
    page.run(f"{COPY}.focus()")
    page.press("Enter")
    page.wait(f"{COPY}.innerText.startsWith('Copied')")
    assert page.run("window.clipboard") == page.run(SELECTED) == "consul-supervisor recover redis"
    page.wait(f"{COPY}.textContent === 'Copy the command'")


def test_the_lease_runs_down_between_two_answers(page: Browser) -> None:
    """The lease falls by the browser's own clock, so it is seen at places between two updates."""
    glides = page.run(
        f"""new Promise((done) => {{
          const bar = {bar("namenode")}, seen = new Map(), end = performance.now() + 20000;
          const look = () => {{
            const step = bar.style.transform, places = seen.get(step) ?? new Set();
            seen.set(step, places.add(bar.getBoundingClientRect().width));
            if (places.size > 3 || performance.now() > end) return done(places.size > 3);
            requestAnimationFrame(look);
          }};
          look();
        }})"""
    )
    assert glides


# --- silence ------------------------------------------------------------------------------------------


def test_no_lease_is_shown_while_the_daemon_is_silent(page: Browser, daemon: CannedDaemon) -> None:
    answer, daemon.status = daemon.status, None
    page.wait("document.documentElement.dataset.state === 'silent'")
    text = page.text()
    assert "The daemon has not answered since" in text and "it cannot be reached" in text
    assert "was holding" in text and "lease unknown" in text
    assert page.run("document.title") == "? No answer · vm7"
    assert page.run("[...document.querySelectorAll('[data-is=bar]')].every((bar) => !bar.checkVisibility())")
    assert page.run("getComputedStyle(document.querySelector('main')).filter") == "grayscale(1)"
    daemon.status = answer
    page.wait("document.documentElement.dataset.state === 'live'")
    assert "was holding" not in page.text() and "has not answered" not in page.text()


# --- hostile values -----------------------------------------------------------------------------------


def test_values_of_other_nodes_stay_text(browser: Browser, daemon: CannedDaemon) -> None:
    told = said(daemon)
    told["troubles"].append(HOSTILE)
    for one in told["items"]:
        one |= {
            "leader": HOSTILE,
            "warnings": [HOSTILE],
            "last_error": {"at": told["daemon"]["now"], "text": HOSTILE},
        }
        one["transitions"][0]["hooks"][0]["detail"] = HOSTILE
        one["last_hook"]["detail"] = HOSTILE
    told["items"][3]["holders"] = [{"session": HOSTILE, "value": json.dumps({"Node": HOSTILE})}]
    event = dict.fromkeys(("time", "item", "role", "hook", "detail", "verb", "note", "why", "user"), HOSTILE)
    kinds = ("role", "hook-failed", "command-received", "command", HOSTILE)
    daemon.events = [{**event, "event": kind} for kind in kinds]
    opened(browser, daemon.url)
    browser.run(OPEN_ALL)
    browser.wait(f"{EVENTS}.querySelectorAll('li').length === {len(kinds)}")
    browser.wait(f"{POLLED} > 2")
    assert browser.run("window.hurt") is None
    assert browser.run("document.querySelectorAll('img, body script + script, iframe').length") == 0
    assert browser.text().count("<img src=x") > 12
    around = f"{row('namenode')}.querySelector('[data-is=leader]').firstElementChild"
    isolated = browser.run(f"getComputedStyle({around}).unicodeBidi")
    assert isolated == "isolate", "it ends a right-to-left override"


def test_the_page_fetches_nothing_from_other_places(page: Browser, daemon: CannedDaemon) -> None:
    page.wait(f"{POLLED} > 2")
    asked = {event["request"]["url"] for event in page.told("Network.requestWillBeSent")}
    assert asked - {"data:,"} == {daemon.url, f"{daemon.url}v1/status"}


def test_the_browser_runs_only_the_script_of_the_page(page: Browser) -> None:
    """The policy refuses markup from text, and every script or style that is added."""
    assert "TrustedHTML" in page.run("try { document.body.innerHTML = 'x' } catch (error) { String(error) }")
    page.run(
        """for (const kind of ['script', 'style']) {
          const added = document.createElement(kind);
          const text = { script: 'window.hurt = 1', style: 'body { color: red !important }' }[kind];
          try { added.textContent = text } catch {}
          document.body.append(added);
        }"""
    )
    assert page.run("window.hurt") is None
    assert page.run("getComputedStyle(document.body).color") != "rgb(255, 0, 0)"
    page.events.clear()  # the policy refused it and the browser reported that


# --- the events of the node ---------------------------------------------------------------------------

LISTED = f"[...{EVENTS}.querySelectorAll('li')].map((each) => each.innerText)"


def test_events_are_read_when_they_are_looked_at_and_when_there_is_one_more(
    page: Browser, daemon: CannedDaemon
) -> None:
    time = said(daemon)["last_event"]
    role = {"time": time, "event": "role", "item": "redis", "former_role": "holding", "role": "losing"}
    daemon.events = [
        {"time": time, "event": "command-received", "item": "redis", "verb": "step-down",
         "uid": 0, "user": "root", "note": "disk swap"},
        {**role, "reason": "step-down", "note": "disk swap", "token": 7},
        {"time": time, "event": "hook-failed", "item": "redis", "hook": "on_lose[0]", "attempt": 2,
         "duration_s": 0.25, "detail": "exit 1"},
    ]  # fmt: skip
    asked = (
        "performance.getEntriesByType('resource').filter((each) => each.name.includes('v1/events')).length"
    )
    page.wait(f"{POLLED} > 1")
    assert page.run(asked) == 0
    page.run(f"{EVENTS}.querySelector('summary').click()")
    page.wait(f"{EVENTS}.querySelectorAll('li').length === 3")
    failed, losing, command = page.run(LISTED)
    assert failed.endswith("✕ on_lose[0] attempt 2 failed 250 ms (exit 1)") and "redis" in failed
    assert losing.endswith("holding → losing (step-down: disk swap), token 7")
    assert command.endswith("step-down by root (disk swap)")
    polled = page.run(POLLED)
    page.wait(f"{POLLED} > {polled + 1}")
    assert page.run(asked) == 1
    daemon.events += [
        {"time": time, "event": "started", "pid": 7, "version": "0.1.0"},
        {"time": time, "event": "reloaded", "what": "changed: redis; added: kafka"},
        {"time": time, "event": "reload-refused", "why": "a.yaml:1:1: cannot"},
        {"time": time, "event": "watchdog", "device": "/dev/watchdog", "state": "armed"},
        {"time": time, "event": "started", "pid": 8, "version": "0.2.0"},
        {"time": time, "event": "stopped", "clean": True},
    ]
    said(daemon)["last_event"] = "2026-11-22T15:01:07.612Z"
    page.wait(f"{EVENTS}.querySelectorAll('li').length === 9")
    texts = f"[...{EVENTS}.querySelectorAll('li > bdi')].map((each) => each.textContent)"
    assert page.run(texts)[:6] == [
        "supervisor stopped",
        "supervisor started, version 0.2.0, pid 8",
        "watchdog /dev/watchdog armed",
        "✕ configuration refused (a.yaml:1:1: cannot)",
        "configuration read again: changed: redis; added: kafka",
        "supervisor started, version 0.1.0, pid 7",
    ]
