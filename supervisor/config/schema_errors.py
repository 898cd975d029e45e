"""Finds, by jsonschema, what in a configuration deviates from its schema.

Four keywords are ours: ``durationMinimum``, ``durationMaximum``, and ``literal`` and ``literalKey`` with the
remedy for a text that refers to a variable where nothing is filled in and no shell reads the text. A
``pattern`` must match the whole text, because Python's ``$`` would let a newline pass. A deviation from
``dependentRequired`` has the path of the key that lacks its companion.
"""

import re
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

from supervisor.config.formats.durations import parse_duration
from supervisor.config.messages import Deviation, refuse
from supervisor.config.problems import Report

TOO_MANY = ("maxItems", "maxProperties")
_OF_ENTRIES = "properties patternProperties additionalProperties propertyNames prefixItems items uniqueItems"
_IN_KEY = re.compile(r"\$[${]")  # a lone dollar may stand in a key, as in JSON's $schema


def validate(data: dict[str, Any], document: dict[str, Any], report: Report) -> None:
    """Report everything in ``data`` that the schema ``document`` does not allow.

    Raises ConfigError when a list or mapping has too many entries, because its entries were not validated
    and no later step can use them.
    """
    unseen = False
    for deviation in deviations(data, document):
        unseen = unseen or deviation.keyword in TOO_MANY
        refuse(deviation, document["$defs"], report)
        assert report.broken(), f"a deviation without a sentence: {deviation.keyword}"
    if unseen:
        report.raise_if_any()


def deviations(data: Any, document: dict[str, Any]) -> Iterator[Deviation]:
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
    """Return our class of validators. The first file that is validated imports jsonschema."""
    from jsonschema.validators import Draft202012Validator, extend

    known = Draft202012Validator.VALIDATORS
    keywords = {
        **{keyword: _of_text(allows) for keyword, allows in _OF_TEXT.items()},
        **{keyword: _unless_too_many(known[keyword]) for keyword in _OF_ENTRIES.split()},
        "dependentRequired": _dependent_required,
        "anyOf": lambda *_: (),  # tells editors what our own keywords and the reader refuse
    }
    return extend(Draft202012Validator, keywords)  # type: ignore[no-untyped-call]  # the stubs leave it out


def _unless_too_many(keyword: Any) -> Any:
    """Return the keyword without the deviations of entries, for a list or mapping that has too many of them.

    The operator must first remove some entries, and validating thousands takes seconds.
    """

    def errors(validator: Any, demand: Any, instance: Any, rule: Any) -> Iterator[Any]:
        is_group = isinstance(instance, list | dict)
        most = rule.get("maxItems" if isinstance(instance, list) else "maxProperties")
        if not is_group or most is None or len(instance) <= most:
            yield from keyword(validator, demand, instance, rule) or ()

    return errors


def _of_text(allows: Callable[[str, str], bool]) -> Any:
    """Return a keyword of jsonschema that ``allows`` decides for each text."""
    from jsonschema.exceptions import ValidationError

    def errors(_: Any, demand: str, instance: Any, __: Any) -> Iterator[ValidationError]:
        if isinstance(instance, str) and not allows(instance, demand):
            yield ValidationError("")

    return errors


def _lasts(text: str, holds: Callable[[float], bool]) -> bool:
    """Return whether ``holds`` is true of a duration. True for any other text: the pattern refuses it."""
    try:
        return holds(parse_duration(text))
    except ValueError:
        return True


_OF_TEXT: dict[str, Callable[[str, str], bool]] = {
    "pattern": lambda text, pattern: re.fullmatch(pattern, text) is not None,
    "literal": lambda text, _: "${" not in text,
    "literalKey": lambda text, _: _IN_KEY.search(text) is None,
    "durationMinimum": lambda text, least: _lasts(text, lambda s: s >= parse_duration(least)),
    "durationMaximum": lambda text, most: _lasts(text, lambda s: s <= parse_duration(most)),
}


def _dependent_required(_: Any, rules: Any, instance: Any, __: Any) -> Iterator[Any]:
    """Yield an error at each key that lacks a companion; its message is the companion's name."""
    from jsonschema.exceptions import ValidationError

    for key in rules.keys() & instance.keys() if isinstance(instance, dict) else ():
        for companion in rules[key]:
            if companion not in instance:
                yield ValidationError(companion, path=(key,))
