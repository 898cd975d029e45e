"""The dashboard for Grafana: its form, and its queries on a Prometheus that has scraped an election.

Grafana itself is no package of Debian, so the form is compared with its JSON model by these rules.
"""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.consul import Agent
from tests.support.pages import ROOT
from tests.support.supervisor import until
from tests.system.programs.prometheus import Prometheus, ScrapedSupervisor, running

METRICS = ROOT / "docs" / "metrics.md"
DASHBOARD: dict[str, Any] = json.loads((ROOT / "examples" / "grafana" / "consul-supervisor.json").read_text())
PANELS: list[dict[str, Any]] = DASHBOARD["panels"]
SHOWN = [panel for panel in PANELS if panel["type"] != "row"]
TYPES = {"row", "stat", "table", "timeseries", "state-timeline"}  # each is part of Grafana
UNITS = {"none", "short", "s", "bytes", "percentunit", "reqps"}
SOURCE = {"type": "prometheus", "uid": "${datasource}"}
VALUES = {
    "job": "consul-supervisor",
    "name": ".*",
    "instance": ".*",
    "__rate_interval": "5m",
    "__range": "5m",
}


def queries() -> Iterator[tuple[str, str]]:
    """Yield the title and the query of each target and annotation."""
    for panel in SHOWN:
        for target in panel["targets"]:
            yield f"{panel['title']} {target['refId']}", target["expr"]
    for annotation in DASHBOARD["annotations"]["list"]:
        yield annotation["name"], annotation["expr"]


def replaced(query: str) -> str:
    """Return the query as Grafana sends it when all items and nodes are chosen."""
    return re.sub(r"\$(\w+)", lambda variable: VALUES[variable[1]], query)


def test_the_dashboard_has_a_schema_a_title_and_an_address() -> None:
    assert isinstance(DASHBOARD["schemaVersion"], int) and DASHBOARD["schemaVersion"] >= 36  # Grafana 9
    assert DASHBOARD["title"] and re.fullmatch(r"[\w-]{1,40}", DASHBOARD["uid"])
    assert "id" not in DASHBOARD, "Grafana gives the number"
    assert DASHBOARD["time"].keys() == {"from", "to"}


def test_each_panel_has_its_own_number_and_title() -> None:
    for key in ("id", "title"):
        values = [panel[key] for panel in PANELS]
        assert all(values) and len(set(values)) == len(values), key


@pytest.mark.parametrize("panel", SHOWN, ids=lambda panel: panel["title"])
def test_a_panel_has_a_source_a_unit_a_description_and_distinct_queries(panel: dict[str, Any]) -> None:
    assert panel["type"] in TYPES and panel["description"].endswith(".")
    assert panel["fieldConfig"]["defaults"]["unit"] in UNITS
    assert panel["datasource"] == SOURCE
    references = [target["refId"] for target in panel["targets"]]
    assert references and len(set(references)) == len(references)
    assert all(target["datasource"] == SOURCE for target in panel["targets"])
    assert all(target.get("instant", False) is (panel["type"] == "table") for target in panel["targets"])


def test_every_variable_in_use_is_defined_and_every_defined_one_is_in_use() -> None:
    defined = {variable["name"]: variable for variable in DASHBOARD["templating"]["list"]}
    used = set(re.findall(r"\$\{?(\w+)", json.dumps(PANELS + DASHBOARD["annotations"]["list"])))
    assert used == {*defined, "__rate_interval", "__range", "__all"} - {"__all"}
    assert defined.pop("datasource")["type"] == "datasource"
    for variable in defined.values():
        assert variable["datasource"] == SOURCE and variable["includeAll"] and variable["multi"]
    assert {name for name, variable in defined.items() if variable["allValue"] is None} == {"job"}


def test_queries_and_variables_use_documented_metrics() -> None:
    documented = METRICS.read_text()
    texts = [query for _, query in queries()]
    texts += [str(variable.get("definition", "")) for variable in DASHBOARD["templating"]["list"]]
    for name in {name for text in texts for name in re.findall(r"\b(?:consul_supervisor|process)_\w+", text)}:
        assert f"| `{name.removesuffix('_bucket').removesuffix('_count')}` |" in documented, name


def test_every_query_returns_data_of_an_election(shared_agent: Agent, unique: str, tmp_path: Path) -> None:
    """Two nodes contend, the holder loses its session, and a semaphore is held beside.

    The queries get data of all series that an idle cluster has, and of a loss that no operator requested.
    """
    first = ScrapedSupervisor(tmp_path / "a", shared_agent, unique, slots=2)
    second = ScrapedSupervisor(tmp_path / "b", shared_agent, unique)
    with (
        running(first, second),
        Prometheus(tmp_path / "prometheus", [first.target, second.target]) as prometheus,
    ):
        counted = "sum(consul_supervisor_transitions_total)"
        begun = until(
            lambda: prometheus.value(counted).get("", 0) >= 2 and prometheus.value(counted)[""], "it has both"
        )
        entry = shared_agent.kv_get(f"{unique}/leader")
        assert entry is not None
        shared_agent.session_destroy(entry["Session"])
        until(lambda: prometheus.value(counted)[""] >= begun + 2, "it has the loss and the next tenure")
        for title, query in queries():
            values = until(lambda query=query: prometheus.series(replaced(query)), f"{title} returns data")  # type: ignore[misc]
            assert "NaN" not in values or "percentile" in title, title  # of operations that did not occur
        for variable in DASHBOARD["templating"]["list"][1:]:
            metric, label = re.fullmatch(r"label_values\((.+), (\w+)\)", variable["definition"]).groups()  # type: ignore[union-attr]
            assert prometheus.series(f"count by ({label}) ({replaced(metric)})"), variable["name"]
