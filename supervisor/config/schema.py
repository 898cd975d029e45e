"""The JSON Schema of the configuration, which is the one source of names, types, bounds and defaults."""

import json
import pkgutil  # importlib.resources would take longer to import than `holds` takes to answer
from functools import cache
from typing import Any


@cache
def text() -> str:
    """Return the text of the schema as it is shipped.

    The file is read once, so that a daemon keeps the schema of its own version when an upgrade replaces it.
    """
    content = pkgutil.get_data("supervisor", "schemas/config.schema.json")  # also out of a zip file
    assert content is not None, "the package lacks its schema"
    return content.decode("utf-8")


def document() -> dict[str, Any]:
    loaded: dict[str, Any] = json.loads(text())
    return loaded


class Defaults:
    """The defaults that a schema document gives to the properties of its definitions."""

    def __init__(self, document: dict[str, Any]) -> None:
        self._definitions = document["$defs"]

    def of(self, definition: str) -> dict[str, Any]:
        """Return the default of each property of a definition, by name, where the property has one."""
        properties = self._definitions[definition]["properties"].items()
        resolved = ((name, self._resolved(rule)) for name, rule in properties)
        return {name: rule["default"] for name, rule in resolved if "default" in rule}

    def _resolved(self, rule: dict[str, Any]) -> dict[str, Any]:
        """Return a rule merged with the definition that its $ref names. Keywords beside the $ref win."""
        while "$ref" in rule:
            target = self._definitions[rule["$ref"].removeprefix("#/$defs/")]
            rule = {**target, **{key: value for key, value in rule.items() if key != "$ref"}}
        return rule
