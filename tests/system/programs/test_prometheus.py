"""Prometheus with our metrics: its linter, its rules, and an alert that fires in earnest."""

from pathlib import Path

import pytest
import yaml

from tests.consul.elections.test_fence import hold_elsewhere
from tests.consul.web.reader import Reader
from tests.docs.test_alerts import RULE_TESTS, rules
from tests.support.background import Handler, Server
from tests.support.captured import captured
from tests.support.consul import Agent
from tests.support.proxy import Proxy
from tests.support.supervisor import until
from tests.system.programs.prometheus import ALERTS, SCRAPE, Prometheus, ScrapedSupervisor, running


def promtool(*arguments: str, stdin: str = "") -> str:
    """Return the output of promtool; raise AssertionError when it finds a fault."""
    ran = captured(["promtool", *arguments], input=stdin, timeout=120)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    return ran.stdout + ran.stderr


def test_the_linter_accepts_a_real_scrape(shared_agent: Agent, unique: str, tmp_path: Path) -> None:
    node = ScrapedSupervisor(tmp_path / "a", shared_agent, unique)
    with running(node):
        assert promtool("check", "metrics", stdin=Reader(node).ask("/metrics").body) == ""


def test_the_examples_of_prometheus_are_valid() -> None:
    assert f"SUCCESS: {len(rules())} rules found" in promtool("check", "rules", str(ALERTS))
    assert "SUCCESS" in promtool("check", "config", str(SCRAPE))


def test_the_alerts_fire_only_as_their_tests_expect() -> None:
    assert "SUCCESS" in promtool("test", "rules", str(RULE_TESTS))


def test_a_stuck_node_pages_an_operator(shared_agent: Agent, unique: str, tmp_path: Path) -> None:
    """One of two nodes holds, loses its session, and its on_lose fails.

    A real Prometheus with the example's own rules fires one alert, and nothing else.
    """
    first = ScrapedSupervisor(tmp_path / "a", shared_agent, unique, on_lose="false")
    second = ScrapedSupervisor(tmp_path / "b", shared_agent, unique)
    with (
        running(first, second),
        Prometheus(tmp_path / "prometheus", [first.target, second.target]) as prometheus,
    ):
        seen = {first.target: 1.0, second.target: 0.0}
        until(lambda: prometheus.value("consul_supervisor_holding") == seen, "it sees who holds")
        assert prometheus.value('up{job="consul-supervisor"}') == dict.fromkeys(seen, 1.0)
        assert prometheus.firing() == {}
        entry = shared_agent.kv_get(f"{unique}/leader")
        assert entry is not None
        shared_agent.session_destroy(entry["Session"])
        expected = {"ConsulSupervisorStuck", "ConsulSupervisorHookFailures"}
        until(lambda: set(prometheus.firing()) == expected, "the alerts fire")
        alert = prometheus.firing()["ConsulSupervisorStuck"]
        assert (alert["labels"]["instance"], alert["labels"]["severity"]) == (first.target, "critical")
        assert alert["annotations"]["summary"].startswith(f"{unique} is stuck on {first.target}")
        assert f"`consul-supervisor recover {unique}`" in alert["annotations"]["description"]
        until(
            lambda: prometheus.value("consul_supervisor_holding")[second.target] == 1, "the other takes over"
        )


class DeadDevice(Handler):
    def do_POST(self) -> None:
        self.answer(500)


def test_a_fence_that_fails_pages_an_operator_while_the_node_waits_and_after_that(
    shared_agent: Agent, unique: str, tmp_path: Path
) -> None:
    """At the example's own pace. The guard lasts for the default lock_delay."""
    session = hold_elsewhere(shared_agent, f"{unique}/leader", lock_delay="30s")
    with Server(DeadDevice) as device:
        fence = {"webhook": f"{device.url}off", "target": "bmc-a", "after": "2s", "exclusive": True}
        node = ScrapedSupervisor(tmp_path / "a", shared_agent, unique, settings={"fence": fence})
        with node, Prometheus(tmp_path / "p", [node.target], hurries=False) as prometheus:
            failures = 'consul_supervisor_hook_failures_total{event="fence"}'
            until(lambda: prometheus.value(failures) == {node.target: 0.0}, "it is scraped")
            shared_agent.session_destroy(session)
            until(lambda: "ConsulSupervisorFenceFails" in prometheus.firing(), "it fires", 30.0)
            assert node.item()["role"] == "acquiring", "the node waits still"
            node.wait_line("role", 40.0, role="holding")
            alert = prometheus.firing()["ConsulSupervisorFenceFails"]
            assert (alert["labels"]["instance"], alert["labels"]["severity"]) == (node.target, "critical")
            node.assert_no_fault()


MAINTENANCE = {"candidate_check": {"maintenance": True, "interval": "1s"}}
SILENT = {"ConsulSupervisorNobodyLeads", "ConsulSupervisorConsulSilent"}


@pytest.mark.parametrize(("maintenance", "holder_dies"), [(False, False), (True, True)])
def test_a_consul_without_a_leader_pages_an_operator(
    tmp_path: Path, unique: str, *, maintenance: bool, holder_dies: bool
) -> None:
    """The agents live and answer what they know alone. The alerts fire within four minutes."""
    check = MAINTENANCE if maintenance else {}
    with (
        Agent(tmp_path / "server", persistent=True) as server,
        Agent(tmp_path / "c", servers=server) as agent,
    ):
        nodes = [ScrapedSupervisor(tmp_path / name, agent, unique, settings=check) for name in "ab"]
        with running(*nodes), Prometheus(tmp_path / "p", [node.target for node in nodes]) as prometheus:
            seen = dict.fromkeys((node.target for node in nodes), 1.0)
            present = "consul_supervisor_leader_present"
            until(lambda: prometheus.value(present) == seen, "both see the leader")
            server.kill()
            if holder_dies:
                nodes[0].kill()
            expected = SILENT | ({"ConsulSupervisorDownWithoutLeader"} if holder_dies else set())
            until(lambda: expected <= set(prometheus.firing()), "the alerts fire", 240.0)


def test_a_holder_that_is_cut_off_alone_pages_an_operator(
    shared_agent: Agent, tmp_path: Path, unique: str
) -> None:
    """Its agent lives, and answers for its servers as a client agent does that has lost them."""
    with Proxy(shared_agent.host, shared_agent.port) as proxy:
        a, b = (
            ScrapedSupervisor(tmp_path / name, shared_agent, unique, settings=MAINTENANCE) for name in "ab"
        )
        a.rewrite({**yaml.safe_load(a.config_path.read_text()), "consul": {"address": proxy.url}})
        with running(a, b), Prometheus(tmp_path / "p", [a.target, b.target]) as prometheus:
            holding = "consul_supervisor_holding"
            until(lambda: prometheus.value(holding) == {a.target: 1.0, b.target: 0.0}, "it sees who holds")
            for path in ("/v1/kv", "/v1/session", "/v1/txn"):
                proxy.answer("500 Internal Server Error", "No known Consul servers", path=path)
            until(lambda: prometheus.value(holding) == {a.target: 0.0, b.target: 1.0}, "the other leads")
            until(lambda: set(prometheus.firing()) == {"ConsulSupervisorConsulSilent"}, "it fires", 240.0)
            alert = prometheus.firing()["ConsulSupervisorConsulSilent"]
            assert alert["labels"]["instance"] == a.target
