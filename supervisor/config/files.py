"""Reads the files of a configuration as one tree, from one file or from a folder whose files are merged.

A folder is read as configuration management fills it: its ``*.yml`` and ``*.yaml`` in the order of their
names, without hidden files. The elections and semaphores of all files are united. Any other top-level key may
be in one file only. Only regular files are read, and never more than the limits below.
"""

import os
import re
import stat
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from supervisor.config.problems import SECTIONS, KeyPath, Position, Positions, Report
from supervisor.config.yaml_reader import InvalidYaml, Tree, read_tree

FILE_BYTES_MAX = 1024 * 1024  # enough for 2,000 elections of 500 bytes
FILES_BYTES_MAX = 2 * FILE_BYTES_MAX  # of a folder's files together
FILES_MAX = 512  # of a folder, which usually has one drop-in for each application

# At the beginning of a line, or quoted as in JSON. Elsewhere it may be part of a hook's text.
_PATH_OF = r"""(?m)(?:^["']?{0}["']?|[{{,]\s*"{0}")\s*:\s*["']?(/[^"',}}#\s]*)"""


@dataclass(slots=True)
class Source:
    """The content of all files together."""

    positions: Positions  # where each key and value is
    data: dict[str, Any] = field(default_factory=dict)
    # The paths of plain scalars that are read as text here, but not by every reader of YAML.
    ambiguous: set[KeyPath] = field(default_factory=set)
    complete: bool = True  # whether each file could be read to its end


def read(path: Path, report: Report) -> Source:
    """Read a file or a folder, report every problem, and fill the positions of the report."""
    source = Source(report.positions)
    budget_bytes = FILES_BYTES_MAX
    try:
        files = _files(path)
    except CannotRead as error:
        files = []
        _refuse(source, path, error, report)
    for file in files:
        try:
            content = _content(file, budget_bytes)
            budget_bytes -= len(content)
            _merge(source, read_tree(str(file), _decoded(file, content, report), report), report)
        except CannotRead as error:
            _refuse(source, file, error, report)
        except InvalidYaml:
            source.complete = False
    return source


class CannotRead(Exception):
    """A file or folder cannot be read. The message says why."""


def _refuse(source: Source, file: Path, error: CannotRead, report: Report) -> None:
    source.complete = False
    report.refuse_at(Position(str(file), 0, 0), (), str(error))


def paths_named(path: Path, key: str) -> Iterator[str]:
    """Yield each absolute path that a line of the files seems to give for the key.

    The files need not be YAML, and a file that cannot be read is left out.
    """
    with suppress(CannotRead):
        for file in _files(path):
            with suppress(CannotRead):
                text = _content(file, FILES_BYTES_MAX).decode("utf-8", "replace")
                yield from re.findall(_PATH_OF.format(key), text)


def _files(path: Path) -> list[Path]:
    try:
        if not stat.S_ISDIR(path.stat().st_mode):
            return [path]
        names = [name for name in os.listdir(path) if name.endswith((".yml", ".yaml")) and name[0] != "."]
    except (OSError, ValueError) as error:
        raise CannotRead(f"cannot be read: {_why(error)}") from None
    if not names:
        raise CannotRead("cannot be used: the folder has no file *.yaml or *.yml")
    if len(names) > FILES_MAX:
        raise CannotRead(f"cannot be used: it has {len(names)} files, at most {FILES_MAX} are read")
    return [path / name for name in sorted(names)]


def _content(file: Path, budget_bytes: int) -> bytes:
    try:
        if not stat.S_ISREG(file.stat().st_mode):
            raise CannotRead("cannot be read: it is not a regular file")
        with file.open("rb") as stream:
            content = stream.read(FILE_BYTES_MAX + 1)
    except (OSError, ValueError) as error:
        raise CannotRead(f"cannot be read: {_why(error)}") from None
    if len(content) > FILE_BYTES_MAX:
        raise CannotRead(f"cannot be read: larger than {FILE_BYTES_MAX >> 20} MiB, split it")
    if len(content) > budget_bytes:
        raise CannotRead(
            f"cannot be read: the folder's files are larger than {FILES_BYTES_MAX >> 20} MiB together"
        )
    return content


def _decoded(file: Path, content: bytes, report: Report) -> str:
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line_start = content.rfind(b"\n", 0, error.start) + 1
        column = len(content[line_start : error.start].decode("utf-8", "replace")) + 1
        position = Position(str(file), content.count(b"\n", 0, error.start) + 1, column)
        report.refuse_at(position, (), "cannot be read: not UTF-8, save it as UTF-8")
        raise InvalidYaml from None


def _merge(source: Source, tree: Tree, report: Report) -> None:
    """Add the tree of one file. If two files set one key, the first file counts."""
    if not isinstance(tree.value, dict):
        source.complete = False
        what = "is empty" if tree.value is None else "is not a mapping"
        message = f"cannot be used: it {what}; {tree.remedy('') or 'begin with elections: or semaphores:'}"
        report.refuse_at(tree.positions.of_value(()), (), message)
        return
    for key, value in tree.value.items():
        if key not in source.data:
            source.data[key] = value
        elif key not in SECTIONS:
            _refuse_twice(source, tree, (key,), report)
        elif not isinstance(value, dict):
            message = f"cannot be used: must be a mapping of names to {key}"
            report.refuse_at(tree.positions.of_value((key,)), (key,), message)
        elif isinstance(source.data[key], dict):
            for name, item in value.items():
                if name in source.data[key]:
                    _refuse_twice(source, tree, (key, name), report)
                source.data[key].setdefault(name, item)
    source.ambiguous |= tree.ambiguous
    for path, position in tree.positions.keys.items():
        source.positions.keys.setdefault(path, position)
    for path, position in tree.positions.values.items():
        if path:
            source.positions.values.setdefault(path, position)
    source.positions.folded |= tree.positions.folded


def _refuse_twice(source: Source, tree: Tree, path: KeyPath, report: Report) -> None:
    first = source.positions.of_key(path)
    report.refuse_at(tree.positions.of_key(path), path, f"cannot be set twice: {first} sets it, remove one")


def _why(error: Exception) -> str:
    """Return the operating system's reason. A ValueError means that no file can have this path."""
    return (error.strerror if isinstance(error, OSError) else None) or "no file can have this path"
