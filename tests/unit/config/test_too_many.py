"""A file with too many entries is refused by their number, before each entry is validated."""

import sys
from pathlib import Path
from typing import Any

import pytest

from supervisor.config import ConfigError, load, schema
from supervisor.config.problems import Positions, Report
from supervisor.config.schema_errors import deviations, validate

SCHEMA = schema()


def elections(count: int, entry: Any) -> dict[str, Any]:
    return {"elections": {f"n{number}": entry for number in range(count)}}


def calls_to_refuse(data: dict[str, Any]) -> int:
    """Return how many Python functions are called until this is refused."""
    calls = 0

    def count(_frame: Any, event: str, _argument: Any) -> None:
        nonlocal calls
        calls += event == "call"

    sys.setprofile(count)
    try:
        validate(data, SCHEMA, Report(Positions("file")))
    except ConfigError:
        return calls
    finally:
        sys.setprofile(None)
    raise AssertionError("it is not refused at once")


@pytest.mark.parametrize("entry", [{}, {"kee": "x"}, None], ids=["sound", "with a fault", "empty"])
def test_ten_times_too_many_entries_are_refused_as_quickly_as_one_too_many(entry: Any) -> None:
    calls_to_refuse(elections(2001, entry))  # imports jsonschema
    assert calls_to_refuse(elections(20_010, entry)) < 1.1 * calls_to_refuse(elections(2001, entry))


@pytest.mark.parametrize(
    "election",
    [
        {"on_acquire": [1] * 33},
        {"on_change": [{"shell": "a", "timeout": 5}] * 33},
        {"on_acquire": [{"exec": [1] * 257}]},
        {"on_acquire": [{"shell": "a", "env": {f"A{number}": 1 for number in range(65)}}]},
        {"on_acquire": [{"webhook": "http://h/", "headers": {f"A{number}": 1 for number in range(33)}}]},
        {"session": {"node_checks": [1] * 33}},
        {"session": {"service_checks": ["a"] * 33}},
    ],
)
def test_a_list_with_too_many_entries_is_one_problem_whatever_its_entries_are(
    election: dict[str, Any],
) -> None:
    (found,) = deviations({"elections": {"app": election}}, SCHEMA)
    assert found.keyword in ("maxItems", "maxProperties")


def test_a_list_with_too_many_entries_does_not_hide_faults_elsewhere(tmp_path: Path) -> None:
    file = tmp_path / "c.yaml"
    headers = ", ".join(f"A{number}: x" for number in range(33))
    hook = f"[{{webhook: 'http://h/', headers: {{{headers}}}}}]"
    file.write_text(f"elections: {{app: {{kee: x, on_acquire: {hook}}}}}\n")
    with pytest.raises(ConfigError) as refused:
        load(file, {}, "host")
    assert [each.path for each in refused.value.problems] == [
        "elections.app.kee",
        "elections.app.on_acquire[0].headers",
    ]
