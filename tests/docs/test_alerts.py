"""The rules of the example for Prometheus: each has its tests, a remedy, and metrics that exist."""

import re
from typing import Any

import pytest
import yaml

from docs.package_index import file_url
from tests.support.pages import REPOSITORY, ROOT, anchors

ALERTS = ROOT / "examples" / "prometheus" / "alerts.yml"
RULE_TESTS = ROOT / "tests" / "system" / "programs" / "alerts_test.yml"
METRICS = ROOT / "docs" / "metrics.md"
FIRING = re.compile(r'ALERTS\{alertname="(\w+)", alertstate="firing"')


def rules() -> list[dict[str, Any]]:
    (group,) = yaml.safe_load(ALERTS.read_text())["groups"]
    found: list[dict[str, Any]] = group["rules"]
    return found


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
