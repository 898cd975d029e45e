"""What a daemon tells Consul's catalog of its items, and what others read from it."""

import json

import pytest
import requests

from supervisor.adapters.consul.presence import (
    DETAIL_BYTES_MAX,
    LEFT_OUT,
    PAIRS_MAX,
    VALUE_BYTES_MAX,
    meta_of,
    parts_of,
    shown,
)
from supervisor.core.actions import Role

HERE = {"version": "1.2", "node": "vm1", "page": ""}


def test_each_item_is_told_by_its_role() -> None:
    parts = [("app", "waiting", ""), ("db", "holding", "token 7"), ("cache", "waiting", "")]
    meta = meta_of(HERE, parts)
    assert meta == {"version": "1.2", "node": "vm1", "holding": "db token 7", "waiting": "app; cache"}
    assert parts_of(meta) == {name: (role, detail) for name, role, detail in parts}


def test_the_words_of_an_operator_never_look_like_another_item() -> None:
    meta = meta_of({}, [("app", "paused", "by root (disk;\n db is full)"), ("db", "paused", "")])
    assert parts_of(meta) == {"app": ("paused", "by root (disk, db is full)"), "db": ("paused", "")}


@pytest.mark.parametrize("detail", ["", "é" * 400])
@pytest.mark.parametrize("count", [1, 200, 2000])
def test_the_meta_has_bounds_and_counts_what_did_not_fit(count: int, detail: str) -> None:
    """Who needs somebody is told first."""
    parts = [(f"item-{number}-{'x' * 50}", "waiting", detail) for number in range(count)]
    meta = meta_of(HERE, [*parts, ("broken", "stuck", detail)])
    assert len(meta) <= 3 + PAIRS_MAX and "stuck" in meta
    assert max(len(value.encode()) for value in meta.values()) <= VALUE_BYTES_MAX
    told = parts_of(meta)
    assert len(told) + int(meta.get(LEFT_OUT, 0)) == count + 1
    assert all(len(words.encode()) <= DETAIL_BYTES_MAX for _, words in told.values())


def test_every_role_is_told() -> None:
    meta = meta_of({}, [(str(role), role, "") for role in Role])
    assert parts_of(meta) == {str(role): (str(role), "") for role in Role}


def answer(body: object) -> requests.Response:
    response = requests.Response()
    response.status_code = 200
    response._content = json.dumps(body).encode()
    return response


def test_the_worst_check_of_a_daemon_is_shown_and_other_programs_are_not() -> None:
    ours = {"managed-by": "consul-supervisor", "node": "vm1"}
    checks = [{"Status": each, "Output": f"is {each}"} for each in ("passing", "critical", "warning")]
    entries = [
        {"Node": {"Node": "n1"}, "Service": {"Meta": meta}, "Checks": checks} for meta in (ours, {}, None)
    ]
    present = shown("s", answer(entries), "the token")
    assert isinstance(present, list)
    (found,) = present
    assert (found.name, found.consul_node, found.status, found.says) == (
        "vm1",
        "n1",
        "critical",
        "is critical",
    )


@pytest.mark.parametrize("body", [{}, [1], [{}], [{"Node": {}, "Service": {"Meta": 1}, "Checks": []}]])
def test_an_answer_of_another_shape_is_reported(body: object) -> None:
    assert "another shape" in str(shown("s", answer(body), "the token"))
