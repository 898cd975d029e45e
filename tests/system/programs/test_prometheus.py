"""Prometheus with our metrics: its linter, its rules, and an alert that fires in earnest."""

import json
import re
import signal
import subprocess
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest
import yaml

from docs.package_index import file_url
from tests.consul.web.reader import Reader
from tests.support.consul import HOST, Agent, free_ports
from tests.support.pages import REPOSITORY, ROOT, anchors
from tests.support.supervisor import PATIENCE_S, Supervisor, until

EXAMPLES = ROOT / "examples" / "prometheus"
ALERTS = EXAMPLES / "alerts.yml"
SCRAPE = EXAMPLES / "prometheus.yml"
RULE_TESTS = Path(__file__).parent / "alerts_test.yml"
METRICS = ROOT / "docs" / "metrics.md"
FIRING = re.compile(r'ALERTS\{alertname="(\w+)", alertstate="firing"')
TTL, LOCK_DELAY = "3s", "6s"


def rules() -> list[dict[str, Any]]:
    (group,) = yaml.safe_load(ALERTS.read_text())["groups"]
    found: list[dict[str, Any]] = group["rules"]
    return found


def promtool(*arguments: str, stdin: str = "") -> str:
    """Return the output of promtool; raise AssertionError when it finds a fault."""
    ran = subprocess.run(
        ["promtool", *arguments], input=stdin, capture_output=True, text=True, check=False, timeout=120
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    return ran.stdout + ran.stderr


class ScrapedSupervisor(Supervisor):
    """One of several supervisors that contend for ``name``; ``on_lose`` is its hook."""

    def __init__(self, folder: Path, agent: Agent, name: str, on_lose: str = "true") -> None:
        hooks = {"on_acquire": [{"exec": ["true"]}], "on_lose": [{"exec": [on_lose], "timeout": "500ms"}]}
        election = {"key": f"{name}/leader", "session": {"ttl": TTL, "lock_delay": LOCK_DELAY}, **hooks}
        config = {
            "consul": {"address": agent.url},
            "http": {"listen": f"{HOST}:0"},
            "elections": {name: election},
        }
        super().__init__(folder, config)

    @property
    def target(self) -> str:
        """The address at which Prometheus finds it."""
        return f"{HOST}:{Reader(self).port}"


@contextmanager
def running(*nodes: ScrapedSupervisor) -> Iterator[None]:
    """Start the supervisors one after the other; the first holds."""
    try:
        nodes[0].start()
        nodes[0].wait_line("role", role="holding")
        for node in nodes[1:]:
            node.start()
            until(lambda node=node: node.target, "it listens")  # type: ignore[misc]
        yield
        for node in nodes:
            node.assert_no_fault()
    finally:
        for node in nodes:
            node.close()


# --- metrics and rules ------------------------------------------------------------------------------


def test_the_linter_accepts_a_real_scrape(shared_agent: Agent, unique: str, tmp_path: Path) -> None:
    node = ScrapedSupervisor(tmp_path / "a", shared_agent, unique)
    with running(node):
        assert promtool("check", "metrics", stdin=Reader(node).ask("/metrics").body) == ""


def test_the_examples_of_prometheus_are_valid() -> None:
    assert f"SUCCESS: {len(rules())} rules found" in promtool("check", "rules", str(ALERTS))
    assert "SUCCESS" in promtool("check", "config", str(SCRAPE))


def test_the_alerts_fire_only_as_their_tests_expect() -> None:
    assert "SUCCESS" in promtool("test", "rules", str(RULE_TESTS))


def test_each_alert_has_a_test_that_it_fires_and_one_that_it_does_not() -> None:
    groups = {group["name"]: group for group in yaml.safe_load(RULE_TESTS.read_text())["tests"]}
    assert [rule["alert"] for rule in rules()] == list(groups)
    for alert, group in groups.items():
        outcomes = {bool(each["exp_samples"]) for each in group["promql_expr_test"]}
        assert outcomes == {True, False}, alert
        assert {found for each in group["promql_expr_test"] for found in FIRING.findall(each["expr"])} == {
            alert
        }


@pytest.mark.parametrize("rule", rules(), ids=lambda rule: rule["alert"])
def test_each_alert_has_a_fault_and_a_remedy(rule: dict[str, Any]) -> None:
    assert rule["labels"]["severity"] in ("critical", "warning")
    assert set(rule["annotations"]) == {"summary", "description", "runbook_url"}
    page, _, anchor = rule["annotations"]["runbook_url"].partition("#")
    assert page == file_url(REPOSITORY, "docs/operations.md")
    assert anchor in anchors(ROOT / "docs" / "operations.md")


@pytest.mark.parametrize("rule", rules(), ids=lambda rule: rule["alert"])
def test_each_alert_uses_existing_metrics(rule: dict[str, Any]) -> None:
    names = set(re.findall(r"\b(?:consul_supervisor|process)_\w+", rule["expr"]))
    assert names or 'up{job="consul-supervisor"}' in rule["expr"]
    for name in names:
        assert f"| `{name}` |" in METRICS.read_text(), name


# --- for real ---------------------------------------------------------------------------------------


class Prometheus:
    """A server of this test alone, with the example's configuration except for targets and pace."""

    def __init__(self, folder: Path, targets: list[str]) -> None:
        folder.mkdir()
        config = yaml.safe_load(SCRAPE.read_text())
        config["global"] = {"scrape_interval": "1s", "evaluation_interval": "1s"}
        config["rule_files"] = [str(ALERTS)]
        (job,) = config["scrape_configs"]
        job["static_configs"] = [{"targets": targets}]
        (folder / "prometheus.yml").write_text(yaml.safe_dump(config))
        self._folder = folder
        (self._port,) = free_ports(1)
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> "Prometheus":
        argv = ["setpriv", "--pdeathsig", "KILL", "prometheus"]
        argv += [f"--config.file={self._folder}/prometheus.yml", f"--storage.tsdb.path={self._folder}/data"]
        argv += [f"--web.listen-address={HOST}:{self._port}", "--log.level=warn"]
        with (self._folder / "log").open("wb") as log:
            self._process = subprocess.Popen(
                argv,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd=self._folder,
                start_new_session=True,
            )
        until(self._ready, "Prometheus is ready")
        return self

    def __exit__(self, *error: object) -> None:
        assert self._process is not None
        self._process.send_signal(signal.SIGTERM)
        try:
            self._process.wait(PATIENCE_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
            raise

    def _ready(self) -> bool:
        assert self._process is not None and self._process.poll() is None, self._log()
        try:
            return self._get("/-/ready").startswith("Prometheus")
        except OSError:
            time.sleep(0.05)
            return False

    def _log(self) -> str:
        return (self._folder / "log").read_text(errors="replace")

    def _get(self, path: str) -> str:
        with urllib.request.urlopen(f"http://{HOST}:{self._port}{path}", timeout=PATIENCE_S) as answer:
            return str(answer.read().decode())

    def value(self, query: str) -> dict[str, float]:
        """Return the value that it computes now, by the instance of each series."""
        answer = json.loads(self._get(f"/api/v1/query?{urlencode({'query': query})}"))
        assert answer["status"] == "success", answer
        return {
            each["metric"].get("instance", ""): float(each["value"][1]) for each in answer["data"]["result"]
        }

    def firing(self) -> dict[str, dict[str, Any]]:
        """Return the alerts that fire, by their name."""
        alerts = json.loads(self._get("/api/v1/alerts"))["data"]["alerts"]
        return {each["labels"]["alertname"]: each for each in alerts if each["state"] == "firing"}


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
