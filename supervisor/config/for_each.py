"""Makes one item for each value of ``for_each``, and fills in ``${EACH}`` in the item's name and texts.

The values are filled in as they stand, also in ``shell`` and ``exec``. They consist of letters, digits, _ and
-, so that no text needs quotes for them. ``$$`` is left as it is, and ``$${EACH}`` is not filled in.
"""

import re
from collections.abc import Iterator
from typing import Any

from supervisor.config.files import FILES_BYTES_MAX
from supervisor.config.problems import SECTIONS, KeyPath, Report
from supervisor.config.schema_errors import deviations
from supervisor.config.yaml_reader import NODES_MAX

EACH = "${EACH}"
_REFERENCE = re.compile(r"\$\$|\$\{EACH\}")
_VALUE_CHARS_MAX = 63
_STAND_IN = "each"  # for the texts of an item that is refused, so that only the cause is reported

_REMEDY = "add for_each with its values, or write $EACH for a variable of the shell"
_REMEDIES = {"defaults": "only an item with for_each can; a hook can use $CONSUL_SUPERVISOR_NAME"}
_ELSEWHERE = "only an item with for_each can, write the text out"


def repeat(data: dict[str, Any], document: dict[str, Any], report: Report) -> None:
    """Replace, in place, each item that has ``for_each`` by one item for each value.

    document: the schema, which says what ``for_each`` may be.
    ``data`` is not validated yet. An item whose ``for_each`` cannot be used stays one item, and the schema
    refuses it later.
    """
    repeater = _Repeater(document["$defs"]["for_each"], report)
    for key, value in data.items():
        if key in SECTIONS and isinstance(value, dict):
            data[key] = repeater.section(key, value)
        else:
            data[key] = repeater.alone((key,), value, _REMEDIES.get(key, _ELSEWHERE))


class _Repeater:
    def __init__(self, rule: dict[str, Any], report: Report) -> None:
        self._rule = rule
        self._report = report
        self._nodes_left = NODES_MAX
        self._chars_left = FILES_BYTES_MAX

    def section(self, section: str, items: dict[str, Any]) -> dict[str, Any]:
        """Return the section with one item for each value of each ``for_each``."""
        alone = {name for name, item in items.items() if not (isinstance(item, dict) and "for_each" in item)}
        result: dict[str, Any] = {}
        for name, item in items.items():
            path = (section, name)
            if name in alone:
                result[name] = self.alone(path[:1], {name: item}, _REMEDY)[name]
                continue
            rest = {key: member for key, member in item.items() if key != "for_each"}
            values = self._values(path, item["for_each"], rest)
            for index, value in enumerate(values):
                made = _filled(name, value)
                if made in result or made in alone:
                    whose = f"{section}.{made} ({self._report.positions.of_key((section, made))})"
                    message = f"cannot share the name {made} with {whose}: give each its own"
                    self._report.refuse((*path, "for_each", index), message)
                    continue
                result[made] = _filled(rest, value)
                self._report.positions.copied((section, made), path)
            if not values:
                result[name] = _filled(item, _STAND_IN)
        return result

    def alone(self, path: KeyPath, value: Any, remedy: str) -> Any:
        """Return a value outside of ``for_each``, and refuse the first ``${EACH}`` in it, if there is one."""
        for at, is_key in _references(path, value):
            refuse = self._report.refuse_key if is_key else self._report.refuse
            refuse(at, f"cannot hold {EACH}: {remedy}")
            return _filled(value, _STAND_IN)
        return value

    def _values(self, path: KeyPath, values: Any, rest: dict[str, Any]) -> list[str]:
        """Return the values of ``for_each``, or none where the item cannot be repeated."""
        if any(deviations(values, self._rule)) or not _refers(path[-1]):
            return []
        for at, is_key in _references(path, rest):
            if is_key:
                message = f"cannot hold {EACH}: it is filled in only in the item's name and in texts"
                self._report.refuse_key(at, message)
        nodes, chars = (size * len(values) for size in _size(rest))
        if nodes > self._nodes_left or chars > self._chars_left:
            limits = f"{NODES_MAX} values or {FILES_BYTES_MAX >> 20} MiB"
            message = f"cannot be repeated: the items of for_each would have more than {limits} in all"
            self._report.refuse((*path, "for_each"), message)
            return []
        self._nodes_left -= nodes
        self._chars_left -= chars
        return list(values)


def _filled(value: Any, each: str) -> Any:
    if isinstance(value, dict):
        return {key: _filled(member, each) for key, member in value.items()}
    if isinstance(value, list):
        return [_filled(entry, each) for entry in value]
    if isinstance(value, str) and EACH in value:
        return _REFERENCE.sub(lambda found: each if found[0] == EACH else found[0], value)
    return value


def _refers(text: Any) -> bool:
    return isinstance(text, str) and EACH in text and EACH in _REFERENCE.findall(text)


def _references(path: KeyPath, value: Any) -> Iterator[tuple[KeyPath, bool]]:
    """Yield the path of each key and text below ``path`` that holds ``${EACH}``, and whether it is a key."""
    if isinstance(value, dict):
        for key, member in value.items():
            if _refers(key):
                yield (*path, key), True
            yield from _references((*path, key), member)
    elif isinstance(value, list):
        for index, entry in enumerate(value):
            yield from _references((*path, index), entry)
    elif _refers(value):
        yield path, False


def _size(value: Any) -> tuple[int, int]:
    """Return how many values this value consists of, and how many characters they may have when filled in."""
    if isinstance(value, str):
        return 1, len(value) + value.count(EACH) * _VALUE_CHARS_MAX
    keys = list(value) if isinstance(value, dict) else []
    members = list(value.values()) if isinstance(value, dict) else value if isinstance(value, list) else []
    sizes = [_size(member) for member in members]
    return 1 + sum(nodes for nodes, _ in sizes), sum(map(len, keys)) + sum(chars for _, chars in sizes)
