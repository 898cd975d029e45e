"""The schema as the one source: it is valid and described, and every default and every key is in use."""

import copy
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from jsonschema.validators import Draft202012Validator

from supervisor.config import loader, schema
from supervisor.config.formats.durations import parse_duration

SCHEMA = schema()
COMPLETE = Path(__file__).parents[3] / "examples" / "configs" / "complete.yaml"

Rule = dict[str, Any]


def resolved(rule: Rule) -> Rule:
    while "$ref" in rule:
        target = SCHEMA["$defs"][rule["$ref"].removeprefix("#/$defs/")]
        rule = {**target, **{key: value for key, value in rule.items() if key != "$ref"}}
    return rule


def objects(node: Any, name: str = "") -> Iterator[tuple[str, Rule]]:
    """Return every part of the schema that has a type or properties."""
    if isinstance(node, dict):
        if "type" in node or "$ref" in node:
            yield name, node
        for key, member in node.items():
            if key not in ("default", "then", "if", "dependentSchemas"):
                yield from objects(member, f"{name}/{key}")


def properties() -> list[tuple[str, Rule]]:
    return [
        (f"{name}/{key}", rule)
        for name, node in objects(SCHEMA)
        for key, rule in node.get("properties", {}).items()
    ]


def defaults() -> list[tuple[str, str]]:
    """Return definition and property of every default that a loader can see."""
    return [
        (definition, key)
        for definition, node in SCHEMA["$defs"].items()
        for key, rule in node.get("properties", {}).items()
        if "default" in resolved(rule)
    ]


def test_the_schema_is_valid_json_schema() -> None:
    Draft202012Validator.check_schema(SCHEMA)


def test_every_property_has_a_description() -> None:
    assert [name for name, rule in properties() if not resolved(rule)["description"].endswith(".")] == []


def test_every_rule_of_the_schema_has_the_parts_of_its_message() -> None:
    """A pattern has its sentence and binds the whole text, a choice has a type, and an object is closed."""
    for name, found in objects(SCHEMA):
        rule = resolved(found)
        assert "type" in rule or {"$ref": "#/$defs/with_command"} in rule["allOf"], name
        if "pattern" in rule:
            assert rule.get("patternErrorMessage") or rule["errorMessage"], name
            assert (rule["pattern"][0], rule["pattern"][-1]) == ("^", "$"), name
        if "enum" in rule:
            assert "type" in rule, name
        if "properties" in rule:
            assert rule["additionalProperties"] is False, name
        assert len(rule.get("required", [])) <= 1, name


def test_editors_are_told_the_bounds_of_durations() -> None:
    """Their validators know no durations: a pattern refuses what is surely out of bounds, nothing else."""
    numbers = "0 0.4 1 5 10 29 30 60 61 99 100 300 500 3601 600000".split()
    texts = [number + unit for number in numbers for unit in ("ms", "s", "m", "h")]
    texts += [f"{text}{rest}" for text in texts for rest in ("0s", "30s", "1h")]
    for name, rule in ((name, rule) for name, rule in SCHEMA["$defs"].items() if name.startswith("at_")):
        bound_s, is_least = parse_duration(name.rpartition("_")[2]), name.startswith("at_least")
        for text in texts:
            length_s = parse_duration(text)
            is_out = length_s < bound_s if is_least else length_s > bound_s
            is_told = re.fullmatch(rule["pattern"], text) is None
            assert is_told <= is_out, (name, text)
    for name, rule in properties():
        if "durationMinimum" in (rule := resolved(rule)):
            least, most = rule["durationMinimum"], rule["durationMaximum"]
            wanted = {f"at_least_{least}"} - {"at_least_0s"} | {f"at_most_{most}"}
            assert set(re.findall(r"at_\w+", str(rule["anyOf"]))) == wanted, name


CHANGED = {
    "ttl": "17s",
    "lock_delay": "47s",
    "behavior": "delete",
    "acquire_failure": "keep",
    "method": "PUT",
    "address": "http://consul:8500",
    "deregister_critical_service_after": "2m",
    "within": "2m",
    "level": "error",
    "format": "json",
}


@pytest.mark.parametrize(("definition", "key"), defaults(), ids=map(".".join, defaults()))
def test_a_changed_default_of_the_schema_changes_the_loaded_settings(
    definition: str, key: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "c.yaml"
    file.write_text(
        "watchdog: {}\n"
        * ("watchdog" in (definition, key))  # beside it another default of accept_overlap is refused
        + """
fleet: {}
elections:
  app:
    session: {}
    on_acquire: [{shell: a}]
    on_lose: [{shell: a}]
    on_change: [{webhook: "https://h/"}]
    run: {exec: [a]}
    candidate_check: {exec: [a]}
    service: {name: s}
  bare: {}
"""
        + "  shot: {fence: {exec: [a]}}\n  told: {fence: {webhook: 'https://h/'}}\n"
        * (definition.startswith("fence"))
        + "  tries: {fence: {try: [{exec: [a]}, {webhook: 'https://h/'}]}}\n" * (definition == "fence_method")
        + "fence_limit: {machines: 2}\n" * (definition == "fence_limit")
        + "semaphores: {some: {limit: 2}}\n"
    )
    changed = copy.deepcopy(SCHEMA)
    rule = changed["$defs"][definition]["properties"][key]
    rule["default"] = another(key, resolved(rule)["default"])
    before = loader.load(file, {}, "node1")
    monkeypatch.setattr(loader, "own_schema", lambda: changed)
    after = loader.load(file, {}, "node1")
    assert repr(after) != repr(before) or after != before  # repr leaves out env and headers, as secret


def another(key: str, default: Any) -> Any:
    """Return a valid default other than ``default``."""
    if isinstance(default, bool):
        return not default
    if isinstance(default, int):
        return default + 1
    if isinstance(default, dict):
        return {"Other": "x"}
    if isinstance(default, list):
        return {"service_checks": [{"id": "x"}], "node_checks": ["x"]}.get(key, [{"shell": "x"}])
    if key not in CHANGED and re.fullmatch(r"[\d.]+(ms|s)", default):
        return "4s" if default != "4s" else "3s"
    return CHANGED.get(key, f"{default}-other")


def used(data: Any, rule: Rule, name: str) -> Iterator[tuple[str, str]]:
    """Return every (object of the schema, key) in ``data``; KeyError for an unknown key."""
    definition = rule.get("$ref", name).removeprefix("#/$defs/")
    rule = resolved(rule)
    if isinstance(data, list):
        for item in data:
            yield from used(item, rule.get("items", {}), f"{definition}[]")
    for key, member in data.items() if isinstance(data, dict) and "properties" in rule else ():
        yield definition, key
        yield from used(member, rule["properties"][key], f"{definition}.{key}")
    if isinstance(data, dict) and isinstance(rule.get("additionalProperties"), dict):
        for member in data.values():
            yield from used(member, rule["additionalProperties"], f"{definition}.*")


def available(rule: Rule, name: str, around: tuple[str, ...] = ()) -> Iterator[tuple[str, str]]:
    """Return every (object of the schema, key) that may be used. ``around``: the definitions above it."""
    definition = rule.get("$ref", name).removeprefix("#/$defs/")
    if definition in around:  # a part of a body consists of such parts
        return
    rule, around = resolved(rule), (*around, definition)
    for key, member in rule.get("properties", {}).items():
        yield definition, key
        yield from available(member, f"{definition}.{key}", around)
    if "items" in rule:
        yield from available(rule["items"], f"{definition}[]", around)
    if isinstance(rule.get("additionalProperties"), dict):
        yield from available(rule["additionalProperties"], f"{definition}.*", around)


def test_the_complete_example_shows_every_available_key_and_no_other() -> None:
    text = COMPLETE.read_text()
    assert "# token: ${MY_TOKEN}" in text  # a comment there, because it excludes token_file
    shown = set(used(yaml.safe_load(text), SCHEMA, "root")) | {("consul", "token"), ("run", "shell")}
    shown |= {("candidate_check", "shell"), ("fence", "shell"), ("fence_method", "shell")}
    shown |= {("fence", key) for key in ("webhook", "method", "headers", "body", "secret_file", "tls")}
    assert shown == set(available(SCHEMA, "root"))


def test_the_complete_example_shows_the_real_defaults() -> None:
    """The values below ``defaults`` and ``log`` are the schema's, except for lock_delay."""
    data = yaml.safe_load(COMPLETE.read_text())
    sections = {"session_defaults": "session", "hook_defaults": "hook", "lose_hook_defaults": "lose_hook"}
    for definition, key in defaults():
        if definition in sections and key != "lock_delay":
            shown = data["defaults"][sections[definition]][key]
        elif definition == "log":
            shown = data["log"][key]
        else:
            continue
        assert shown == resolved(SCHEMA["$defs"][definition]["properties"][key])["default"]
