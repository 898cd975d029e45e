"""The problems of a configuration with their positions, and the report that collects them.

A message says why a value cannot be used, and the remedy. A message must never show a value that may be a
secret, such as a token, a header, a URL, or any text that was filled in from the environment.
"""

import re
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from supervisor.errors import OperatorError

KeyPath = tuple[str | int, ...]
"""From the root of the file to a value: ``("elections", "namenode", "on_lose", 0, "timeout")``."""

SECTIONS = ("elections", "semaphores")  # items of both have hooks and a session, and share one set of names
_COPIED_LENGTHS = (3, 2)  # of the path of an item's hooks, and of an item

PROBLEMS_MAX = 1000  # the operator corrects the first few and checks again
REFUSALS_MAX = 10 * PROBLEMS_MAX  # copies included: one mistake in for_each may be in 2,000 items
QUOTED_CHARS_MAX = 60  # a longer quotation would hide the rest of the message

# A colon within these does not separate the parts of a message.
_ASIDE = re.compile(r'"(\\.|[^"\\])*"|\([^)]*\)|KEY: VALUE|elections: or')
_PLAIN_KEY = re.compile(r"[A-Za-z0-9_-]{1,64}")


def items_of(data: dict[str, Any]) -> Iterator[tuple[str, str, Any]]:
    """Yield section, name and value of each item in data that may have any fault."""
    for section in SECTIONS:
        items = data.get(section)
        for name, item in items.items() if isinstance(items, dict) else ():
            yield section, name, item


def hooks_of(data: dict[str, Any]) -> Iterator[tuple[KeyPath, Any]]:
    """Yield path and value of each hook of HOOK_EVENTS, fence and method, in data that may have any fault."""
    from supervisor.core.settings import HOOK_EVENTS

    for section, name, item in items_of(data):
        if not isinstance(item, dict):
            continue
        if "fence" in item:
            yield (section, name, "fence"), (fence := item["fence"])
            methods = fence.get("try") if isinstance(fence, dict) else None
            for index, hook in enumerate(methods) if isinstance(methods, list) else ():
                yield (section, name, "fence", "try", index), hook
        for list_name in HOOK_EVENTS:
            hooks = item.get(list_name)
            for index, hook in enumerate(hooks) if isinstance(hooks, list) else ():
                yield (section, name, list_name, index), hook


class Position(NamedTuple):
    """A position in a file, counted from 1. Line 0 stands for the whole file."""

    file: str
    line: int
    column: int

    def __str__(self) -> str:
        """Format the position as compilers do, so that editors can jump to it."""
        return f"{self.file}:{self.line}:{self.column}" if self.line else self.file


class Problem(NamedTuple):
    """One fault or warning, as the operator reads it."""

    file: str
    line: int
    column: int
    path: str
    message: str

    @property
    def remedy(self) -> str:
        """The last part of the message, which is the remedy or the reason. Blank: it has only one part."""
        plain = _ASIDE.sub(lambda aside: "." * len(aside[0]), self.message)
        _, separator, last = plain.rpartition(": ")
        return self.message[len(plain) - len(last) :] if separator else ""

    def __str__(self) -> str:
        """Format the problem: ``c.yaml:12:7: elections.namenode.on_lose[0].timeout: cannot ...: ...``."""
        position = Position(self.file, self.line, self.column)
        return ": ".join(part for part in (str(position), self.path, self.message) if part)


class ConfigError(OperatorError):
    """The configuration cannot be used. ``problems`` holds every reason, sorted by position."""

    has_places = True

    def __init__(self, problems: tuple[Problem, ...]) -> None:
        self.problems = tuple(sorted(problems))
        super().__init__("\n".join(map(str, self.problems)))

    @property
    def in_short(self) -> str:
        """The first problem, and how many more there are."""
        first, *others = map(str, self.problems)
        return first + (f" (and {len(others)} more: see check)" if others else "")


class Positions:
    """The positions of keys and values. A value without a position of its own has that of its container."""

    def __init__(self, root: str) -> None:
        self.root = Position(root, 0, 0)
        self.keys: dict[KeyPath, Position] = {}
        self.values: dict[KeyPath, Position] = {}
        self.folded: dict[KeyPath, str] = {}  # texts whose lines YAML joins, as they are written
        self._written: dict[KeyPath, KeyPath] = {}

    def of_value(self, path: KeyPath) -> Position:
        """Return the position of a value. A mapping or a list has the position of its key."""
        path = self.written(path)
        while path and path not in self.values:
            path = path[:-1]
        return self.values.get(path, self.root)

    def of_key(self, path: KeyPath) -> Position:
        return self.keys.get(self.written(path)) or self.of_value(path)

    def has_key(self, path: KeyPath) -> bool:
        return self.written(path) in self.keys

    def folded_at(self, path: KeyPath) -> str:
        return self.folded.get(self.written(path), "")

    def copied(self, path: KeyPath, written: KeyPath) -> None:
        """Note that the loader has copied to ``path`` what the files have at ``written``."""
        self._written[path] = written

    def written(self, path: KeyPath) -> KeyPath:
        """Return the path at which the files have a value that for_each or ``defaults`` may have copied."""
        for length in _COPIED_LENGTHS if self._written else ():
            if (original := self._written.get(path[:length])) is not None:
                return (*original, *path[length:])
        return path


class Report:
    """Collects the problems of one configuration, and its warnings.

    A mistake within ``for_each`` or ``defaults`` harms many items. It is one problem, at the position at
    which the files have it, and its message names the first of these items. A report has the position of the
    value at a path, or with ``_key`` of the key. Too many refusals raise ConfigError.
    """

    def __init__(self, positions: Positions) -> None:
        self.positions = positions
        self._refused: _Collected = {}
        self._warned: _Collected = {}
        self._broken: set[KeyPath] = set()
        self._refusals = 0

    @property
    def problems(self) -> list[Problem]:
        return _problems(self._refused)

    @property
    def warnings(self) -> list[Problem]:
        return _problems(self._warned)

    def refuse(self, path: KeyPath, message: str) -> None:
        self.refuse_at(self.positions.of_value(path), path, message)

    def refuse_key(self, path: KeyPath, message: str) -> None:
        self.refuse_at(self.positions.of_key(path), path, message)

    def refuse_at(self, position: Position, path: KeyPath, message: str) -> None:
        self._collect(self._refused, position, path, message)
        self._broken.update(path[:length] for length in range(len(path) + 1))
        self._refusals += 1
        if len(self._refused) >= PROBLEMS_MAX or self._refusals >= REFUSALS_MAX:
            self.raise_if_any()

    def warn(self, path: KeyPath, message: str) -> None:
        self.warn_at(self.positions.of_value(path), path, message)

    def warn_at(self, position: Position, path: KeyPath, message: str) -> None:
        self._collect(self._warned, position, path, message)

    def warn_key(self, path: KeyPath, message: str) -> None:
        self.warn_at(self.positions.of_key(path), path, message)

    def broken(self, *path: str | int) -> bool:
        return path in self._broken

    def raise_if_any(self) -> None:
        if self.problems:
            raise ConfigError(tuple(self.problems))

    def _collect(self, into: "_Collected", position: Position, path: KeyPath, message: str) -> None:
        into.setdefault((position, self.positions.written(path), message), []).append(path)


_Collected = dict[tuple[Position, KeyPath, str], list[KeyPath]]
"""Each problem once, with the paths of all copies of the value at fault."""


def _problems(collected: _Collected) -> list[Problem]:
    return [
        Problem(*position, dotted(written), message + _in_items(written, paths))
        for (position, written, message), paths in collected.items()
    ]


def _in_items(written: KeyPath, paths: list[KeyPath]) -> str:
    """Return the end of a message, which names the items whose copies alone are at fault."""
    if written in paths:
        return ""
    items = sorted({str(path[1]) for path in paths})
    return f" (in {items[0]}{f' and {len(items) - 1} more' if items[1:] else ''})"


def dotted(path: KeyPath) -> str:
    """Format a path as operators write it: ``elections.namenode.on_lose[0].timeout``."""
    text = ""
    for step in path:
        if isinstance(step, int):
            text += f"[{step}]"
        elif _PLAIN_KEY.fullmatch(step):
            text += f".{step}"
        else:
            text += f"[{quoted(step)}]"
    return text.removeprefix(".")


def quoted(text: str) -> str:
    """Quote a text of the file for a message: one line, bounded, unprintable characters escaped."""
    shown = text if len(text) <= QUOTED_CHARS_MAX else text[:QUOTED_CHARS_MAX] + "..."
    escaped = shown.replace("\\", "\\\\").replace('"', '\\"')
    return '"' + "".join(c if c.isprintable() else ascii(c)[1:-1] for c in escaped) + '"'


def nearest(name: str, known: list[str]) -> str | None:
    """Return the known name that is most similar to ``name``. None: no known name is similar."""
    import difflib  # imported here, because only a file with a fault needs it

    matches = difflib.get_close_matches(name[:QUOTED_CHARS_MAX], known, n=1, cutoff=0.65)
    return matches[0] if matches else None


def known_names(name: str, known: Iterable[str]) -> str:
    """Return the known names, and which of them was probably meant by ``name``."""
    names = list(known)
    match = nearest(name, names)
    return (", ".join(names) or "none") + (f", did you mean {match}?" if match else "")
