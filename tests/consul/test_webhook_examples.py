"""The examples for Slack and PagerDuty: each request has the form that the receiver's public page wants."""

import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from tests.consul.webhook_forms import Receiver, example
from tests.support.consul import Agent
from tests.support.examples import VARIABLES
from tests.support.supervisor import Supervisor, until

NASTY = 'a "b" \\ <!channel> é\n${CONSUL_SUPERVISOR_SESSION}'
HOST = os.uname().nodename

Start = Callable[..., Supervisor]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """Return a function that starts a daemon with a configuration; all end with the test."""
    with ExitStack() as stack:

        def started(config: dict[str, Any], **environ: str) -> Supervisor:
            count = len(list(tmp_path.iterdir()))
            node = Supervisor(tmp_path / f"node{count}", config, {**VARIABLES, **environ})
            stack.callback(node.close)
            node.start()
            return node

        yield started


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with Receiver() as one:
        yield one


@pytest.mark.long
def test_slack_gets_each_change_with_the_leaders_value_as_plain_text(
    receiver: Receiver, shared_agent: Agent, unique: str, start: Start
) -> None:
    key = f"{unique}/leader"
    url = f"{receiver.url.rstrip('/')}/services/T0/B0/X"
    observer = start(example("slack", receiver.url, shared_agent, key), SLACK_WEBHOOK_URL=url)
    received = receiver.received.bodies
    until(lambda: received, "the state found at start is sent")
    value = NASTY.replace("$", "$$")
    start({"consul": {"address": shared_agent.url}, "elections": {"x": {"key": key, "value": value}}})
    until(lambda: len(received) > 1, "the leader is sent")
    assert set(receiver.received.paths) == {"/services/T0/B0/X"}
    sections = [message.pop("blocks") for message in received]
    texts = [section["text"].pop("text") for (section,) in sections]
    assert sections == [[{"type": "section", "text": {"type": "plain_text"}}]] * len(sections)
    assert texts[0] == 'billing is led by "nobody", before by "nobody" (initial)'
    assert texts[1] == f'billing is led by "{NASTY}", before by "nobody" (leader-changed)'
    assert received == [{"text": f"Leader of billing ({why})"} for why in ("initial", "leader-changed")]
    observer.wait_line("hook-succeeded", reason="leader-changed")
    assert observer.stop() == 0
    assert not observer.lines("hook-failed")
    observer.assert_no_fault()


def test_pagerduty_is_paged_by_a_failed_on_lose_and_its_fault_costs_no_lead(
    receiver: Receiver, shared_agent: Agent, unique: str, start: Start
) -> None:
    receiver.received.refuses = 1
    node = start(example("pagerduty", receiver.url, shared_agent, f"{unique}/leader"))
    node.wait_line("hook-failed", hook="resolve", detail="500 Internal Server Error")
    node.wait_line("role", role="holding")
    node.wait_line("run-started")
    assert node.stop() == 0
    resolve, trigger = receiver.received.bodies
    assert receiver.received.paths == ["/v2/enqueue"] * 2
    whole = {"routing_key": VARIABLES["PAGERDUTY_ROUTING_KEY"], "dedup_key": f"billing@{HOST}"}
    assert resolve == {**whole, "event_action": "resolve"}
    payload = trigger.pop("payload")
    assert trigger == {**whole, "event_action": "trigger"}
    assert payload["summary"] == f"{HOST} is powered off: it could not give up billing"
    assert (payload["source"], payload["component"], payload["class"]) == (HOST, "billing", "lose-failed")
    assert payload["severity"] == "critical"
    assert len(node.lines("hook-succeeded", hook="page")) == 1
    assert VARIABLES["PAGERDUTY_ROUTING_KEY"] not in node.log_text
