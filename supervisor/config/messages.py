"""Turns each deviation that the validator found into a message for the operator, with the remedy.

A message quotes a value only where the value cannot be a secret: a choice of few words, a duration, a name.
"""

import json
import re
from collections.abc import Callable
from typing import Any

from supervisor.config.problems import SECTIONS, KeyPath, Report, nearest, quoted
from supervisor.core.frozen import dataclass

_KNOWN_SHOWN_MAX = 20
_LIKE_BOOLEANS = ("yes", "no", "on", "off", "True", "False")  # YAML 1.1 reads each as a boolean
_NO_BREAK_SPACE = "\xa0"  # looks like a space, but indents nothing
_OTHER_WORDS = {"command": "shell", "cmd": "shell", "script": "exec", "args": "exec", "url": "webhook"}
# By the key that only a mapping of this kind has: keys that mappings of other kinds have.
_OF_OTHER_KIND = {
    "key": {
        "prefix": "only semaphores have prefix, an election has key",
        "limit": "only semaphores have limit, declare it below semaphores",
        "prune_delay": "only semaphores have prune_delay, an election has session.lock_delay",
    },
    "prefix": {
        "key": "only elections have key, a semaphore has prefix",
        "acquire_delay": "only elections have acquire_delay, remove it",
        "busy_delay": "only elections have busy_delay, remove it",
        "fence": "only elections can have fence in this version, remove it",
    },
    "target": dict.fromkeys(
        ("retries", "retry_delay"), "a fence is tried again by itself, for as long as it is of use, remove it"
    ),
}
ITEMS = tuple((section,) for section in SECTIONS)  # the paths of the mappings that hold items by their names
_BELOW_ITEM = "indent {} further, below the name of its item"
_QUOTABLE_TITLES = ("duration", "name")
_NO_TIMEOUT = (
    "run has no timeout, because it lasts as long as the lock is held: limit a job by its command, such as "
    "[timeout, 1h, PROGRAM]; stop_timeout is the time to end after SIGTERM"
)


@dataclass(frozen=True, slots=True)
class Deviation:
    """A value that is not what a keyword of the schema demands."""

    path: KeyPath  # where the value is in the configuration
    value: Any
    keyword: str  # the keyword, such as ``pattern``
    demand: Any
    rule: dict[str, Any]  # the object of the schema that has the keyword
    rule_path: KeyPath  # how the validator came to the keyword
    detail: str  # the message of the validator


def refuse(found: Deviation, definitions: dict[str, Any], report: Report) -> None:
    """Report the mistakes that caused a deviation; none where another deviation shows the mistake better."""
    path = found.path
    if found.keyword == "additionalProperties":
        properties = found.rule["properties"]
        for key in (key for key in found.value if key not in properties):
            guess = _misplaced(key, found, definitions) or _guess(key, properties, definitions)
            report.refuse_key((*path, key), f"cannot be set here: {guess}")
    elif found.keyword == "dependentRequired":
        report.refuse_key(path, f"cannot be used without {found.detail}: add it, or remove {path[-1]}")
    elif "propertyNames" in found.rule_path:
        sentence = _of_name if found.keyword == "pattern" else _SENTENCES[found.keyword]
        report.refuse_key((*path, found.value), found.rule.get("errorMessage") or sentence(found))
    elif found.keyword == "uniqueItems":
        for index, entry in enumerate(found.value):
            if entry in found.value[:index]:
                what = quoted(entry) if isinstance(entry, str) else "the same entry"
                report.refuse((*path, index), f"cannot name {what} again: remove one of the two")
    elif message := _SENTENCES[found.keyword](found):
        report.refuse(path, message)


def _misplaced(key: str, found: Deviation, definitions: dict[str, Any]) -> str:
    """Return what is indented too little, where a key beside or above this one shows it. Blank: none does."""
    above = found.path[-1] if found.path[:-1] in ITEMS else None
    for name in (above, *found.value):
        rule = found.rule["properties"].get(name, {})
        for _ in range(3):  # hooks, their list, and a hook
            rule = definitions.get(rule.get("$ref", "").removeprefix("#/$defs/"), rule)
            rule = rule.get("items", rule)
        if key in rule.get("properties", {}) and name == above:
            return _BELOW_ITEM.format(name)
        if key in rule.get("properties", {}) or (name in SECTIONS and found.value[name] is None):
            return f"indent it further than {name}, to which it belongs"
    return ""


def _guess(key: str, properties: dict[str, Any], definitions: dict[str, Any]) -> str:
    known = list(properties)
    if _NO_BREAK_SPACE in key:
        return "it holds a no-break space, write a plain space"
    for own, others in _OF_OTHER_KIND.items():
        if own in known and key in others:
            return others[key]
    if key == "timeout" and "stop_timeout" in known:
        return _NO_TIMEOUT
    if (word := _OTHER_WORDS.get(key)) in known:
        return f"no such key, did you mean {word}?"
    if match := nearest(key, known):
        return f"no such key, did you mean {match}?"
    for name in known:
        target = definitions.get(properties[name].get("$ref", "").removeprefix("#/$defs/"), {})
        if key in target.get("properties", {}):
            return f"no such key, did you mean {name}.{key}?"
    more = ", ..." if len(known) > _KNOWN_SHOWN_MAX else ""
    return f"no such key, known are {', '.join(known[:_KNOWN_SHOWN_MAX])}{more}"


def _type(found: Deviation) -> str:
    wanted = found.demand
    kinds = [_KINDS[kind] for kind in ([wanted] if isinstance(wanted, str) else wanted)]
    title = found.rule.get("title")
    what = f"a {title}" if title else " or ".join(kinds)
    if found.value is None:
        empty = "entry" if isinstance(found.path[-1], int) else "key"
        return f"cannot be empty: must be {what}, or remove the {empty}"
    if found.path[:-1] in ITEMS and found.path[-1] in found.rule.get("properties", {}):
        return f"cannot be an item: {_BELOW_ITEM.format(found.path[-1])}"
    like_boolean = isinstance(found.value, str) and found.value in _LIKE_BOOLEANS
    shown = quoted(found.value) if like_boolean else _kind(found.value)
    if wanted == "integer" and (isinstance(found.value, float) or _is_long_number(found.value)):
        shown = _shown(found)
    return f"cannot be {shown}: {_type_remedy(found, what)}"


def _type_remedy(found: Deviation, what: str) -> str:
    value, wanted = found.value, found.demand
    scalar = isinstance(value, bool | int | float)
    if isinstance(value, str) and _NO_BREAK_SPACE in value:
        return f"must be {what}, and it holds a no-break space: write a plain space"
    if wanted == "object" and isinstance(value, str) and re.match(r"\w+:\S", value):
        return f"must be {what}, write a space after the colon"
    if "errorMessage" in found.rule and (scalar or wanted != "string"):
        return str(found.rule["errorMessage"])
    if wanted == "integer" and _is_long_number(value):
        return f"must be a whole number from {found.rule['minimum']} to {found.rule['maximum']}"
    if wanted == "boolean" and isinstance(value, str):
        return "must be true or false, without quotes"
    if "enum" in found.rule:
        return f"must be {_alternatives(_options(found.rule['enum']))}"
    if "string" in ([wanted] if isinstance(wanted, str) else wanted) and scalar:
        pattern = found.rule.get("pattern", "")
        if re.search(pattern, json.dumps(value)) is None:  # with quotes it would be refused again
            return str(found.rule["patternErrorMessage"])
        return f"must be {what}, quote it"
    return f"must be {what}"


def _is_long_number(value: Any) -> bool:
    """Return whether the value is a number of so many digits that it was read as text."""
    return isinstance(value, str) and re.fullmatch(r"-?[0-9]{19,}", value) is not None


def _kind(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return "a bare number"
    if isinstance(value, str):
        return "text"
    return "a mapping" if isinstance(value, dict) else "a list"


def _enum(found: Deviation) -> str:
    if not isinstance(found.value, str):
        return ""  # its type is refused already
    options = _options(found.demand)
    match = nearest(found.value, options)
    hint = f", did you mean {match}?" if match else ""
    if found.value in ("true", "false"):
        hint = ", without quotes"
    return f"cannot be {quoted(found.value)}: must be {_alternatives(options)}{hint}"


def _pattern(found: Deviation, unquoted: str = "this text") -> str:
    if found.value == "":
        return f"cannot be empty: {found.rule['patternErrorMessage']}"
    quotable = found.rule.get("title") in _QUOTABLE_TITLES
    what = quoted(found.value) if quotable else unquoted
    literal = "no variable is filled in here, it " if quotable and "${" in found.value else ""
    return f"cannot be {what}: {literal}{found.rule['patternErrorMessage']}"


def _of_name(found: Deviation) -> str:
    return _pattern(found, "this name")


def _options(enum: list[str | bool]) -> list[str]:
    """Return the values of an enum as a file has them."""
    return [_kind(each) if isinstance(each, bool) else each for each in enum]


def _alternatives(names: list[str]) -> str:
    return " or ".join(filter(None, (", ".join(names[:-1]), names[-1])))


def _shown(found: Deviation) -> str:
    return str(found.value)[:24]


def _out_of_bounds(most_or_least: str) -> Callable[[Deviation], str]:
    return lambda found: f"cannot be {_shown(found)}: must be at {most_or_least} {found.demand}"


def _too_many(found: Deviation) -> str:
    return f"cannot have {len(found.value)} entries: at most {found.demand}"


_SENTENCES: dict[str, Callable[[Deviation], str]] = {
    "type": _type,
    "enum": _enum,
    "pattern": _pattern,
    "literal": lambda found: f"cannot hold ${{: no variable is filled in here; {found.demand}",
    "literalKey": lambda found: f"cannot hold ${{ or $$: {found.demand}",
    "minimum": _out_of_bounds("least"),
    "maximum": _out_of_bounds("most"),
    "durationMinimum": _out_of_bounds("least"),
    "durationMaximum": _out_of_bounds("most"),
    "maxItems": _too_many,
    "maxProperties": _too_many,
    "minItems": lambda found: "cannot be empty: give at least one, or remove the key",
    "minProperties": lambda found: "cannot be empty: give at least one",
    "minLength": lambda found: "cannot be empty: fill it in, or remove the key",
    "maxLength": lambda found: f"cannot be {len(found.value)} characters long: at most {found.demand}",
    "required": lambda found: found.rule.get("errorMessage", f"cannot be without {found.demand[0]}: add it"),
}

_KINDS = {
    "string": "text",
    "object": "a mapping",
    "array": "a list",
    "boolean": "true or false",
    "integer": "a whole number",
}
