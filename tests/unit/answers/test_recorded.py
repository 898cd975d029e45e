"""Answers of Consul that other projects have published, from versions that no test here can reach."""

import tomllib
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import pytest

from supervisor.core import outcomes as o
from tests.unit.answers.replies import CONSUL, REQUESTS, Reply

RECORDED = tomllib.loads(Path(__file__).with_name("recorded.toml").read_text())["answer"]


@pytest.mark.parametrize(
    "row", RECORDED, ids=lambda row: f"{row['request']} {row['status']} {row['version']}"
)
def test_a_published_answer_has_the_expected_outcome(row: dict[str, Any]) -> None:
    request = next(one for one in REQUESTS if type(one).__name__ == row["request"])
    named = {field.name: row[field.name] for field in fields(request) if field.name in row}
    reply = Reply(row["status"], row["body"].encode())
    outcome = CONSUL.decode(replace(request, **named), reply.response)
    assert type(outcome).__name__ == row["outcome"], outcome
    if isinstance(outcome, o.Denied) and "lacks permission" in row["body"]:
        assert " needs " not in outcome.why
