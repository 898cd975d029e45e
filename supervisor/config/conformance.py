"""Whether values conform to the schema: a bare yes or no, by the schema made into functions.

jsonschema says what is wrong, and takes its time for it: longer to be imported than all else that
``check`` needs, and two thirds of a large file's loading, in which the daemon hears nothing. Of a file
without a fault there is nothing to say, so it is asked only when the answer here is no.

It must never say yes where jsonschema would find a deviation. So it means what jsonschema means, keyword
by keyword, and a keyword that it does not know cannot be in the schema.
"""

import json
import re
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from supervisor.formats import durations

Check = Callable[[Any], bool]

_SAY_NOTHING = ("$schema", "$defs", "title", "description", "default", "patternErrorMessage", "x-available")
_DEFINITIONS = "#/$defs/"


def conforms(data: Any, document: dict[str, Any]) -> bool:
    """Whether the schema ``document`` allows ``data``."""
    return _Compiler(document).compiled(document)(data)


class _Compiler:
    """Makes checks of the rules of one schema; of a definition when it is first needed."""

    def __init__(self, document: dict[str, Any]) -> None:
        self._definitions = document["$defs"]
        self._made: dict[str, Check] = {}

    def compiled(self, rule: dict[str, Any]) -> Check:
        """All that ``rule`` demands of a value."""
        checks = tuple(self._checks(rule))
        if len(checks) == 1:
            return checks[0]
        return lambda value: all(check(value) for check in checks)

    def _checks(self, rule: dict[str, Any]) -> Iterator[Check]:
        """Its type comes first, then how many entries it has: nothing is then asked of a value of another
        type, nor of each of too many entries."""
        if "type" in rule:
            yield _type(rule["type"])
        if MOST & rule.keys():
            yield lambda value: not has_too_many(value, rule)
        if _MEMBERS & rule.keys():
            yield self._members(rule)
        if "if" in rule:
            yield self._implied(rule)
        for keyword, demand in rule.items():
            if keyword not in _TOGETHER:
                yield self._check(keyword, demand)

    def _check(self, keyword: str, demand: Any) -> Check:
        if keyword == "$ref":
            return self._definition(demand.removeprefix(_DEFINITIONS))
        if keyword == "not":
            refused = self.compiled(demand)
            return lambda value: not refused(value)
        if keyword == "oneOf":
            branches = [self.compiled(branch) for branch in demand]
            return lambda value: sum(branch(value) for branch in branches) == 1
        if keyword == "items":
            item = self.compiled(demand)
            return lambda value: not isinstance(value, list) or all(map(item, value))
        if keyword == "propertyNames":
            name = self.compiled(demand)
            return lambda value: not isinstance(value, dict) or all(map(name, value))
        if keyword == "dependentSchemas":
            rules = {key: self.compiled(rule) for key, rule in demand.items()}
            return lambda value: (
                not isinstance(value, dict) or all(rules[key](value) for key in rules.keys() & value.keys())
            )
        return PLAIN_KEYWORDS[keyword](demand)

    def _definition(self, name: str) -> Check:
        def check(value: Any) -> bool:
            if name not in self._made:
                self._made[name] = self.compiled(self._definitions[name])
            return self._made[name](value)

        return check

    def _members(self, rule: dict[str, Any]) -> Check:
        """``properties``, and what all other members must be."""
        known = {key: self.compiled(member) for key, member in rule.get("properties", {}).items()}
        others = rule.get("additionalProperties", True)
        other = (lambda _: others) if isinstance(others, bool) else self.compiled(others)
        return lambda value: (
            not isinstance(value, dict) or all(known.get(key, other)(member) for key, member in value.items())
        )

    def _implied(self, rule: dict[str, Any]) -> Check:
        condition, consequence = self.compiled(rule["if"]), self.compiled(rule["then"])
        return lambda value: not condition(value) or consequence(value)


_MEMBERS = {"properties", "additionalProperties"}
MOST = {"maxItems", "maxProperties"}
_TOGETHER = {"type", *MOST, *_MEMBERS, "if", "then", *_SAY_NOTHING}


def has_too_many(value: Any, rule: dict[str, Any]) -> bool:
    """Whether a list or mapping has more entries than ``rule`` allows."""
    if not isinstance(value, list | dict):
        return False
    most = rule.get("maxItems" if isinstance(value, list) else "maxProperties")
    return most is not None and len(value) > most


# --- plain keywords: of which no rule is below ---------------------------------------------------


def _type(wanted: str | list[str]) -> Check:
    names = (wanted,) if isinstance(wanted, str) else wanted
    if names == ("integer",):
        return _is_integer
    kinds = tuple(_KINDS[name] for name in names)
    return lambda value: isinstance(value, kinds)


_KINDS = {"string": str, "object": dict, "array": list, "boolean": bool}


def _is_integer(value: Any) -> bool:
    """As JSON Schema has it, ``2.0`` is one, too."""
    if isinstance(value, float):
        return value.is_integer()
    return isinstance(value, int) and not isinstance(value, bool)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _pattern(pattern: str) -> Check:
    matches = re.compile(pattern).fullmatch
    return lambda value: not isinstance(value, str) or matches(value) is not None


def _among(choices: Iterable[str | bool]) -> Check:
    """A boolean equals no number here."""
    kinds = {(type(choice), choice) for choice in choices}
    return lambda value: isinstance(value, str | bool) and (type(value), value) in kinds


def _sized(kind: type[Any], allows: Callable[[int], bool]) -> Check:
    return lambda value: not isinstance(value, kind) or allows(len(value))


def _lasting(allows: Callable[[float], bool]) -> Check:
    """What is no duration is refused by its pattern."""

    def check(value: Any) -> bool:
        try:
            return not isinstance(value, str) or allows(durations.seconds(value))
        except ValueError:
            return True

    return check


def _is_unique(value: Any) -> bool:
    """``1`` and ``1.0`` pass for two; what must be unique here are texts, and mappings to texts."""
    if not isinstance(value, list):
        return True
    return len({json.dumps(item, sort_keys=True) for item in value}) == len(value)


def _companions(rules: dict[str, list[str]]) -> Check:
    return lambda value: (
        not isinstance(value, dict)
        or all(companion in value for key in rules.keys() & value.keys() for companion in rules[key])
    )


PLAIN_KEYWORDS: dict[str, Callable[[Any], Check]] = {
    "enum": _among,
    "const": lambda choice: _among((choice,)),
    "pattern": _pattern,
    "minLength": lambda least: _sized(str, lambda size: size >= least),
    "maxLength": lambda most: _sized(str, lambda size: size <= most),
    "minItems": lambda least: _sized(list, lambda size: size >= least),
    "minProperties": lambda least: _sized(dict, lambda size: size >= least),
    "minimum": lambda least: lambda value: not _is_number(value) or value >= least,
    "maximum": lambda most: lambda value: not _is_number(value) or value <= most,
    "required": lambda keys: lambda value: not isinstance(value, dict) or all(key in value for key in keys),
    "dependentRequired": _companions,
    "uniqueItems": lambda wanted: _is_unique if wanted else lambda value: True,
    "durationMinimum": lambda least: _lasting(lambda length_s: length_s >= durations.seconds(least)),
    "durationMaximum": lambda most: _lasting(lambda length_s: length_s <= durations.seconds(most)),
}
