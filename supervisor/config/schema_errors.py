"""What in a configuration deviates from its schema, as jsonschema finds it.

Two keywords are ours, ``durationMinimum`` and ``durationMaximum``; a ``pattern`` must match the
whole text, for Python's ``$`` would let a newline pass; ``dependentRequired`` points at the key.

jsonschema is imported by the first file with a fault. This module is not: a daemon whose own files
were upgraded beneath it must not go on with some of each.
"""

from collections.abc import Iterator
from functools import cache
from typing import Any

from supervisor.config.conformance import PLAIN_KEYWORDS, has_too_many
from supervisor.config.messages import Deviation

_OURS = ("pattern", "durationMinimum", "durationMaximum")
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
    from jsonschema.validators import Draft202012Validator, extend

    ours: dict[str, Any] = {keyword: _plain(keyword) for keyword in _OURS}
    known = Draft202012Validator.VALIDATORS
    bounded = {keyword: _unless_too_many(known[keyword]) for keyword in _OF_ENTRIES}
    keywords = {**ours, **bounded, "dependentRequired": _dependent_required}
    return extend(Draft202012Validator, keywords)  # type: ignore[no-untyped-call]  # the stubs leave it out


def _unless_too_many(keyword: Any) -> Any:
    """Nothing is said of the entries where there are more than may be: a person takes some away first,
    and a daemon that reads the file again must not stand still for seconds."""

    def errors(validator: Any, demand: Any, instance: Any, rule: Any) -> Iterator[Any]:
        if not has_too_many(instance, rule):
            yield from keyword(validator, demand, instance, rule) or ()

    return errors


def _plain(keyword: str) -> Any:
    """A keyword that looks at one value, as jsonschema wants it."""
    from jsonschema.exceptions import ValidationError

    def errors(_: Any, demand: Any, instance: Any, __: Any) -> Iterator[ValidationError]:
        if not PLAIN_KEYWORDS[keyword](demand)(instance):
            yield ValidationError("")

    return errors


def _dependent_required(_: Any, rules: Any, instance: Any, __: Any) -> Iterator[Any]:
    """At the key that lacks its companion; the companion's name is the message."""
    from jsonschema.exceptions import ValidationError

    for key in rules.keys() & instance.keys() if isinstance(instance, dict) else ():
        for companion in rules[key]:
            if companion not in instance:
                yield ValidationError(companion, path=(key,))
