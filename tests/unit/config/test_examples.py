"""The examples that newcomers copy: each loads without an unintended warning and names its schema."""

from pathlib import Path

import pytest
import yaml
from jsonschema.validators import Draft202012Validator

from supervisor.config import load, schema
from tests.support.examples import CONFIGS, CONFIGURATIONS, MODELINE, VARIABLES, WARNED
from tests.support.supervisor import ROOT

APPLICATIONS = {"activemq", "cron", "haproxy", "hdfs", "postgresql", "redis", "rolling-restart", "virtual-ip"}


def test_the_examples_are_complete() -> None:
    names = "alertmanager complete cron-on-two customers election minimal observer pagerduty rebuild slack"
    assert {file.stem for file in CONFIGS.iterdir()} == {*names.split(), "webhook"}
    assert {file.parent.name for file in CONFIGURATIONS} == {"configs", *APPLICATIONS}


@pytest.mark.parametrize("file", CONFIGURATIONS, ids=lambda file: str(file.stem))
def test_an_example_loads_without_an_unintended_warning(file: Path) -> None:
    config = load(file, VARIABLES, "node1")
    assert config.items
    assert len(config.warnings) == len(WARNED.get(file.parent.name, ()))


@pytest.mark.parametrize("file", CONFIGURATIONS, ids=lambda file: str(file.stem))
def test_editors_find_the_schema_of_an_example(file: Path) -> None:
    modeline = file.read_text().splitlines()[0].removeprefix(MODELINE)
    assert (file.parent / modeline).resolve() == ROOT / "schemas" / "config.schema.json"


@pytest.mark.parametrize("file", CONFIGURATIONS, ids=lambda file: str(file.stem))
def test_any_validator_accepts_an_example(file: Path) -> None:
    """Editors and pipelines know JSON Schema, and not our own keywords."""
    Draft202012Validator(schema()).validate(yaml.safe_load(file.read_text()))
