"""What in a configuration deviates from its schema, as jsonschema finds it.

Two keywords are ours, ``durationMinimum`` and ``durationMaximum``; a ``pattern`` must match the
whole text, because Python's ``$`` would let a newline pass; ``dependentRequired`` points at the key.
"""

import re
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

from supervisor.config.messages import Deviation
from supervisor.formats.durations import parse_duration

TOO_MANY = ("maxItems", "maxProperties")
_OF_ENTRIES = ("properties", "additionalProperties", "propertyNames", "items", "uniqueItems")


def deviations(data: Any, document: dict[str, Any]) -> Iterator[Deviation]:
    """Everything in ``data`` that the schema ``document`` does not allow."""
    return map(_deviation, _validator()(document).iter_errors(data))


def _deviation(error: Any) -> Deviation:
    return Deviation(
        path=tuple(error.absolute_path),
        value=error.instance,
        keyword=error.validator,
        demand=error.validator_value,
        rule=error.schema,
        rule_path=tuple(error.absolute_schema_path),
        detail=error.message,
    )


@cache
def _validator() -> Any:
    """Make the class of validators; jsonschema is imported by the first file that is validated."""
    from jsonschema.validators import Draft202012Validator, extend

    known = Draft202012Validator.VALIDATORS
    keywords = {
        **{keyword: _of_text(allows) for keyword, allows in _OF_TEXT.items()},
        **{keyword: _unless_too_many(known[keyword]) for keyword in _OF_ENTRIES},
        "dependentRequired": _dependent_required,
    }
    return extend(Draft202012Validator, keywords)  # type: ignore[no-untyped-call]  # the stubs leave it out


def _unless_too_many(keyword: Any) -> Any:
    """Say nothing of the entries where there are more than may be: a person takes some away first, and
    nobody waits until each of them is looked at."""

    def errors(validator: Any, demand: Any, instance: Any, rule: Any) -> Iterator[Any]:
        if not _has_too_many(instance, rule):
            yield from keyword(validator, demand, instance, rule) or ()

    return errors


def _has_too_many(value: Any, rule: dict[str, Any]) -> bool:
    """Whether a list or mapping has more entries than ``rule`` allows."""
    if not isinstance(value, list | dict):
        return False
    most = rule.get("maxItems" if isinstance(value, list) else "maxProperties")
    return most is not None and len(value) > most


def _of_text(allows: Callable[[str, str], bool]) -> Any:
    """A keyword that looks at one text, as jsonschema wants it."""
    from jsonschema.exceptions import ValidationError

    def errors(_: Any, demand: str, instance: Any, __: Any) -> Iterator[ValidationError]:
        if isinstance(instance, str) and not allows(instance, demand):
            yield ValidationError("")

    return errors


def _matches(text: str, pattern: str) -> bool:
    return re.fullmatch(pattern, text) is not None


def _lasts(text: str, holds: Callable[[float], bool]) -> bool:
    """Whether this holds of a duration; what is none is refused by its pattern."""
    try:
        return holds(parse_duration(text))
    except ValueError:
        return True


_OF_TEXT: dict[str, Callable[[str, str], bool]] = {
    "pattern": _matches,
    "durationMinimum": lambda text, least: _lasts(text, lambda s: s >= parse_duration(least)),
    "durationMaximum": lambda text, most: _lasts(text, lambda s: s <= parse_duration(most)),
}


def _dependent_required(_: Any, rules: Any, instance: Any, __: Any) -> Iterator[Any]:
    """At the key that lacks its companion; the companion's name is the message."""
    from jsonschema.exceptions import ValidationError

    for key in rules.keys() & instance.keys() if isinstance(instance, dict) else ():
        for companion in rules[key]:
            if companion not in instance:
                yield ValidationError(companion, path=(key,))
