"""The examples are what newcomers copy: each loads, without a warning, and knows its schema."""

from pathlib import Path

import pytest
import yaml
from jsonschema.validators import Draft202012Validator

from supervisor.config import load, schema

FOLDER = Path(__file__).parents[2] / "examples" / "configs"
FILES = sorted(FOLDER.glob("*.yaml"))


def test_the_examples_are_complete() -> None:
    elections = "activemq election hdfs-namenode minimal observer redis-primary webhook"
    semaphores = "cron-on-two rebuild rolling-restart"
    assert {file.stem for file in FILES} == {"complete", *elections.split(), *semaphores.split()}


@pytest.mark.parametrize("file", FILES, ids=lambda file: str(file.stem))
def test_an_example_loads_without_a_warning(file: Path) -> None:
    config = load(file, {"NODE_ADDRESS": "192.0.2.11"}, "node1")
    assert config.items
    assert config.warnings == ()


@pytest.mark.parametrize("file", FILES, ids=lambda file: str(file.stem))
def test_editors_find_the_schema_of_an_example(file: Path) -> None:
    modeline, prefix = file.read_text().splitlines()[0], "# yaml-language-server: $schema="
    assert modeline.startswith(prefix)
    assert (FOLDER / modeline.removeprefix(prefix)).resolve() == FOLDER.parents[
        1
    ] / "schemas/config.schema.json"


@pytest.mark.parametrize("file", FILES, ids=lambda file: str(file.stem))
def test_any_validator_accepts_an_example(file: Path) -> None:
    """Editors and pipelines know JSON Schema, and nothing of the keywords that are ours."""
    Draft202012Validator(schema()).validate(yaml.safe_load(file.read_text()))
