"""The JSON Schema of the configuration: the one source of names, types, bounds and defaults.

It is read from the package's data, and it is the same file that editors complete from.
"""

import json
from pathlib import Path
from typing import Any

_FILE = Path(__file__).parents[1] / "schemas" / "config.schema.json"


def text() -> str:
    """The schema as it is shipped."""
    return _FILE.read_text(encoding="utf-8")


def document() -> dict[str, Any]:
    """The schema as values."""
    loaded: dict[str, Any] = json.loads(text())
    return loaded


class Defaults:
    """The defaults that a schema document gives to the properties of its definitions."""

    def __init__(self, document: dict[str, Any]) -> None:
        self._definitions = document["$defs"]

    def of(self, definition: str) -> dict[str, Any]:
        """The default of every property of a definition that has one."""
        properties = self._definitions[definition]["properties"].items()
        resolved = ((name, self._resolved(rule)) for name, rule in properties)
        return {name: rule["default"] for name, rule in resolved if "default" in rule}

    def _resolved(self, rule: dict[str, Any]) -> dict[str, Any]:
        """A rule with what its $ref says; what stands beside a $ref comes first."""
        while "$ref" in rule:
            target = self._definitions[rule["$ref"].removeprefix("#/$defs/")]
            rule = {**target, **{key: value for key, value in rule.items() if key != "$ref"}}
        return rule
