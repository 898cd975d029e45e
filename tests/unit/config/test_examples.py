"""The examples that newcomers copy: each loads without an unintended warning and names its schema."""

from pathlib import Path

import pytest
import yaml
from jsonschema.validators import Draft202012Validator

from supervisor.config import schema
from tests.support.examples import CONFIGURATIONS, MODELINE
from tests.support.supervisor import ROOT


@pytest.mark.parametrize("file", CONFIGURATIONS, ids=lambda file: str(file.stem))
def test_editors_find_the_schema_of_an_example(file: Path) -> None:
    modeline = file.read_text().splitlines()[0].removeprefix(MODELINE)
    assert (file.parent / modeline).resolve() == ROOT / "schemas" / "config.schema.json"


@pytest.mark.parametrize("file", CONFIGURATIONS, ids=lambda file: str(file.stem))
def test_any_validator_accepts_an_example(file: Path) -> None:
    """Editors and pipelines know JSON Schema, and not our own keywords."""
    Draft202012Validator(schema()).validate(yaml.safe_load(file.read_text()))
