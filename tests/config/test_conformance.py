"""The bare yes or no says what jsonschema says, of whatever: else a fault would be let through."""

import copy
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from supervisor.config import schema
from supervisor.config.conformance import conforms
from supervisor.config.schema_errors import deviations
from tests.support.examples import CONFIGURATIONS
from tests.support.patience import PATIENCE_S
from tests.support.supervisor import ENVIRON, ROOT

SCHEMA = schema()
CONFIGURATION = 78
DATA = [yaml.safe_load(path.read_text()) for path in CONFIGURATIONS]
KEYS = sorted({key for rule in SCHEMA["$defs"].values() for key in rule.get("properties", {})})
NUMBERS = [True, False, -1, 0, 1, 2, 100, 101, 2.0, 2.5, 10**6]
TEXTS = [
    "", "a", "a b", "a\n", "A_1", "é", "/a", "/a/", "/", "a:1", "${X}", "http://h/", "x" * 64,
    "x" * 70000,
]  # fmt: skip
DURATIONS = [
    "0s", "99ms", "100ms", "1s", "30s", "60s", "61s", "5m", "1h", "24h", "25h", "1.2.3s", "10",
    "none",
]  # fmt: skip
CHOICES = ["info", "auto", "release", "keep", "acquire", "POST", "shell"]
LISTS: list[Any] = [
    [], ["a", "a"], [1, True], [{"id": "a"}], [{"id": "a"}, {"id": "a"}], [{"shell": "a"}] * 32,
    *([f"a{number}" for number in range(size)] for size in (1, 32, 33, 256, 257)),
]  # fmt: skip
MAPPINGS: list[Any] = [
    {},
    {"a": "b"},
    {"A-b": "c", "CONSUL_SUPERVISOR_X": "y"},
    {"a b": 1}, {"a": {}},
    *({f"k{number}": "v" for number in range(size)} for size in (32, 33, 64, 65)),
    {"id": "a", "more": 1},
    {"shell": "a"},
    {"exec": ["a"], "timeout": "5s"},
    {"shell": "a", "exec": ["a"]},
    {"shell": "a", "exec": ["a"], "webhook": "http://h/"},
    {"shell": "a", "method": "PUT"},
    {"webhook": "http://h/", "method": "PUT"},
    {"webhook": "http://h/", "cwd": "/"},
    {"token": "a", "token_file": "/a"},
    {"cert_file": "/a"},
    {"cert_file": "/a", "key_file": "/b"},
    {"contend": False, "on_change": []},
    {"contend": False, "on_acquire": []},
    {"contend": True, "on_acquire": []},
    {"contend": 0, "limit": 1, "on_acquire": []},
    {"limit": 2, "contend": False, "session": {}},
    {"on_lose_failure": []},
    {"limit": 2, "on_lose_failure": [], "on_lose": []},
    {"listen": "127.0.0.1:1"},
]  # fmt: skip
VALUES = [None, *NUMBERS, *TEXTS, *DURATIONS, *CHOICES, *LISTS, *MAPPINGS]

few = settings(max_examples=150, deadline=None)
scalars = st.sampled_from([None, *NUMBERS, *TEXTS, *DURATIONS, *CHOICES]) | st.text(max_size=5)
structures = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(KEYS), inner, max_size=3),
    max_leaves=8,
)


def agree(data: Any, rule: dict[str, Any] = SCHEMA) -> bool:
    """Whether both say the same of ``data``."""
    document = {**rule, "$defs": SCHEMA["$defs"]}
    return conforms(data, document) == (not list(deviations(data, document)))


def rules(node: Any) -> Iterator[dict[str, Any]]:
    """Every part of the schema that demands something."""
    if isinstance(node, dict):
        if node.keys() & {"type", "$ref", "not", "properties", "required", "const"}:
            yield node
        for key, member in node.items():
            if key not in ("default", "dependentRequired"):
                yield from rules(member)
    for member in node if isinstance(node, list) else ():
        yield from rules(member)


def members(data: Any) -> list[tuple[Any, Any]]:
    """Every (mapping or list, key or index) within ``data``."""
    inner = data.items() if isinstance(data, dict) else enumerate(data) if isinstance(data, list) else ()
    return [place for key, member in inner for place in ((data, key), *members(member))]


def test_of_each_rule_and_each_value_both_say_the_same() -> None:
    every = list({repr(rule): rule for rule in rules(SCHEMA)}.values())
    assert len(every) > 100
    assert not [(rule, value) for rule in every for value in VALUES if not agree(value, rule)]


def test_a_keyword_that_it_does_not_know_is_not_passed_over() -> None:
    with pytest.raises(KeyError, match="multipleOf"):
        conforms(1, {"multipleOf": 2, "$defs": {}})


@pytest.mark.parametrize("data", DATA)
def test_the_examples_conform(data: Any) -> None:
    assert conforms(data, SCHEMA) and agree(data)


@pytest.mark.parametrize("items", [2000, 2001])
def test_of_very_many_items_both_say_the_same(items: int) -> None:
    assert agree({"elections": {f"a{number}": {} for number in range(items)}})


@few
@given(data=structures)
def test_of_any_structure_both_say_the_same(data: Any) -> None:
    assert agree(data)


@few
@given(data=st.sampled_from(DATA), draw=st.data())
def test_of_an_example_with_another_value_somewhere_both_say_the_same(data: Any, draw: st.DataObject) -> None:
    data = copy.deepcopy(data)
    within, key = draw.draw(st.sampled_from(members(data)))
    within[key] = draw.draw(structures)
    assert agree(data)


@pytest.mark.long
@few
@given(data=st.sampled_from(DATA), draw=st.data())
def test_of_an_example_with_members_moved_both_say_the_same(data: Any, draw: st.DataObject) -> None:
    """What is right in one place comes to stand in another, beside what it may not stand beside."""
    data = copy.deepcopy(data)
    places = members(data)
    source, from_key = draw.draw(st.sampled_from(places))
    target = draw.draw(st.sampled_from([within for within, _ in places if isinstance(within, dict)]))
    target[draw.draw(st.sampled_from(KEYS) | st.just(str(from_key)))] = copy.deepcopy(source[from_key])
    if draw.draw(st.booleans()):
        del source[from_key]
    assert agree(data)


def test_a_file_with_a_fault_is_refused_also_where_jsonschema_is_gone(tmp_path: Path) -> None:
    """As below a daemon that runs while what it was installed from is replaced."""
    file = tmp_path / "c.yaml"
    file.write_text("elections: {app: {keey: a}}")
    code = (
        "import sys; from supervisor.__main__ import main; sys.modules['jsonschema.validators'] = None; "
        "sys.argv[1:] = ['check', sys.argv[1]]; sys.exit(main())"
    )
    argv = [sys.executable, "-c", code, str(file)]
    done = subprocess.run(
        argv, capture_output=True, text=True, cwd=ROOT, env=ENVIRON, timeout=PATIENCE_S, check=False
    )
    assert (done.returncode, done.stdout) == (CONFIGURATION, "")
    assert done.stderr.startswith(f"{file}: cannot be used: it has faults, which cannot be told (")
    assert done.stderr.count("\n") == 1
