"""A configuration against its schema: every deviation becomes a problem with its place.

Two keywords are ours, ``durationMinimum`` and ``durationMaximum``; a ``pattern`` must match the
whole text, for Python's ``$`` would let a newline pass; ``dependentRequired`` points at the key.
"""

import re
from collections.abc import Iterator
from typing import Any

from jsonschema.exceptions import ValidationError
from jsonschema.validators import Draft202012Validator, extend

from supervisor.config import durations
from supervisor.config.problems import Report
from supervisor.config.sentences import Deviation, findings


def validate(data: dict[str, Any], document: dict[str, Any], report: Report) -> None:
    """Report everything in ``data`` that the schema ``document`` does not allow."""
    for error in _Validator(document).iter_errors(data):
        for finding in findings(_deviation(error), document["$defs"]):
            refuse = report.refuse_key if finding.at_key else report.refuse
            refuse(finding.path, finding.message)
        assert report.problems, f"a deviation without a sentence: {error.validator}"


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


def _pattern(_: Any, pattern: str, instance: Any, __: Any) -> Iterator[ValidationError]:
    if isinstance(instance, str) and not re.fullmatch(pattern, instance):
        yield ValidationError("")


def _dependent_required(_: Any, rules: Any, instance: Any, __: Any) -> Iterator[ValidationError]:
    """At the key that lacks its companion; the companion's name is the message."""
    for key in rules.keys() & instance.keys() if isinstance(instance, dict) else ():
        for companion in rules[key]:
            if companion not in instance:
                yield ValidationError(companion, path=(key,))


def _duration_minimum(_: Any, limit: str, instance: Any, __: Any) -> Iterator[ValidationError]:
    length_s = _length_s(instance)
    if length_s is not None and length_s < durations.seconds(limit):
        yield ValidationError("")


def _duration_maximum(_: Any, limit: str, instance: Any, __: Any) -> Iterator[ValidationError]:
    length_s = _length_s(instance)
    if length_s is not None and length_s > durations.seconds(limit):
        yield ValidationError("")


def _length_s(instance: Any) -> float | None:
    """None for what is no duration: its type or pattern is refused elsewhere."""
    try:
        return durations.seconds(instance) if isinstance(instance, str) else None
    except ValueError:
        return None


_Validator: Any = extend(  # type: ignore[no-untyped-call]  # the stubs leave it out
    Draft202012Validator,
    {
        "pattern": _pattern,
        "dependentRequired": _dependent_required,
        "durationMinimum": _duration_minimum,
        "durationMaximum": _duration_maximum,
    },
)
