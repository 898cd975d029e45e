"""/metrics of a real supervisor beside a real Consul, and docs/metrics.md, which names every metric."""

import re
from collections.abc import Iterator

import pytest
from prometheus_client import Metric
from prometheus_client.parser import text_string_to_metric_families

from tests.consul.web.reader import Reader
from tests.support.consul import Agent
from tests.support.pages import ROOT, rows
from tests.support.supervisor import Supervisor
from tests.unit.runtime.test_watchdogs import holder
from tests.unit.telemetry.test_watchdog import family_of

PAGE = ROOT / "docs" / "metrics.md"
MAIN, SLOTS = "main", "slots"
UNIQUE = "of-test-metrics"
HOOK = [{"exec": ["true"]}]
SESSION = {"ttl": "2s", "lock_delay": "20s"}


def config(agent: Agent, unique: str) -> dict[str, object]:
    """Return a file with an election and a semaphore, with hooks of all kinds."""
    hooks = {f"on_{event}": HOOK for event in ("acquire", "lose", "lose_failure", "change")}
    item = {"session": SESSION, **hooks, "candidate_check": {"exec": ["true"], "rise": 1}}
    return {
        "consul": {"address": agent.url},
        "http": {"listen": "127.0.0.1:0"},
        "elections": {MAIN: {"key": f"{unique}/leader", "service": {"name": MAIN}, **item}},
        "semaphores": {SLOTS: {"prefix": f"{unique}/slots", "limit": 2, **item}},
    }


@pytest.fixture(scope="module")
def node(shared_agent: Agent, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Supervisor]:
    """Return a node that leads the election and has a slot of the semaphore."""
    supervisor = Supervisor(tmp_path_factory.mktemp("metrics") / "node", config(shared_agent, UNIQUE))
    with supervisor:
        for name in (MAIN, SLOTS):
            supervisor.wait_line("role", item=name, role="holding")
        yield supervisor
        assert supervisor.stop() == 0
        supervisor.assert_no_fault()


def scraped(node: Supervisor) -> dict[str, Metric]:
    """Return the families by their names in the text, which are those of the page."""
    told = Reader(node).ask("/metrics")
    assert (told.status, told.headers["content-type"]) == (200, "text/plain; version=0.0.4; charset=utf-8")
    families = {family.name: family for family in text_string_to_metric_families(told.body)}
    types = dict(re.findall(r"^# TYPE (\S+) (\S+)$", told.body, re.MULTILINE))
    assert len(types) == len(families)
    return {name: families[name.removesuffix("_total")] for name in types}


def values(family: Metric, **labels: str) -> list[float]:
    return [each.value for each in family.samples if labels.items() <= each.labels.items()]


def test_the_page_names_every_metric_with_its_type_and_labels_and_no_other(node: Supervisor) -> None:
    families = scraped(node)
    families["consul_supervisor_watchdog_reset_seconds"] = family_of(holder())  # this machine may have none
    documented = {re.sub("`", "", metric): rest for metric, *rest in rows(PAGE, "metric")}
    assert sorted(documented) == sorted(families)
    for name, (kind, unit, labels, meaning) in documented.items():
        family = families[name]
        told = {label for sample in family.samples for label in sample.labels} - {"le"}
        assert (kind, set(re.findall(r"`(\w+)`", labels))) == (family.type, told), name
        assert (unit == "seconds") == ("_seconds" in name and "timestamp" not in name and "start" not in name)
        assert meaning.endswith("."), name


@pytest.mark.long
def test_the_page_names_the_values_of_labels(node: Supervisor) -> None:
    """Names of the file and versions are no such values."""
    text = PAGE.read_text()
    for family in scraped(node).values():
        for sample in family.samples:
            for label, value in sample.labels.items():
                if label in ("role", "event", "reason", "operation", "error"):
                    assert f"`{value}`" in text, f"{label} {value}"


def test_a_scrape_shows_the_tenure_its_hooks_and_consul(node: Supervisor) -> None:
    families = scraped(node)
    for name, kind in ((MAIN, "election"), (SLOTS, "semaphore")):
        item = {"name": name, "kind": kind}
        assert values(families["consul_supervisor_holding"], **item) == [1]
        assert values(families["consul_supervisor_leader_present"], **item) == [1]
        counted = families["consul_supervisor_transitions_total"]
        assert values(counted, event="acquire", reason="acquired", **item) == [1]
        assert sum(values(counted, **item)) == 1
        (left_s,) = values(families["consul_supervisor_lease_seconds"], **item)
        (room_s,) = values(families["consul_supervisor_lease_room_seconds"], **item)
        assert 0 < left_s < room_s
        attempts = [
            sample.value
            for sample in families["consul_supervisor_hook_duration_seconds"].samples
            if sample.name.endswith("_count")
            and {**item, "event": "acquire"}.items() <= sample.labels.items()
        ]
        assert attempts == [1]
    for metric, value in (("holders", 1), ("limit", 2), ("effective_limit", 2), ("slot", 0)):
        assert values(families[f"consul_supervisor_{metric}"]) == [value]
    writes = values(families["consul_supervisor_consul_request_duration_seconds"], operation="write")
    assert max(writes) >= 4  # two sessions, an acquire, a slot
    assert values(families["consul_supervisor_healthy"]) == [1]
    (memory_bytes,) = values(families["process_resident_memory_bytes"])
    assert memory_bytes > 1 << 20


def test_no_value_session_or_key_is_in_the_metrics(node: Supervisor, shared_agent: Agent) -> None:
    """A scraper may see names of the file, and nothing that is in Consul."""
    entry = shared_agent.kv_get(f"{UNIQUE}/leader")
    assert entry is not None
    body = Reader(node).ask("/metrics").body
    assert MAIN in body
    for secret in (entry["Session"], entry["Value"].decode(), f"{UNIQUE}/leader"):
        assert secret not in body


def test_the_control_socket_serves_equal_metrics_and_a_head_has_no_body(node: Supervisor) -> None:
    reader = Reader(node)
    over_tcp, on_socket = reader.ask("/metrics"), reader.ask_socket("/metrics")
    names = [set(re.findall(r"^# TYPE (\S+)", told.body, re.MULTILINE)) for told in (over_tcp, on_socket)]
    assert names[0] == names[1] and on_socket.headers["content-type"] == over_tcp.headers["content-type"]
    assert reader.ask("/metrics", "HEAD").body == ""
    assert reader.ask("/metrics", "POST").status == 405
