"""Loads a lone drop-in as if it were in its folder already.

Configuration management checks a file before it installs the file. The drop-in then has the name of a
temporary file, and the folder still has its former version, which must not count beside the new one. Faults
that the folder has anyway do not count either, so that an operator can correct two broken files one after the
other.
"""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from supervisor.config import files, loader
from supervisor.config.for_each import repeat
from supervisor.config.problems import SECTIONS, ConfigError, Places, Problem, Report, items_of
from supervisor.config.schema import document
from supervisor.config.settings import Config


@dataclass(frozen=True, slots=True)
class DropIn:
    """A file that is to be installed."""

    file: Path  # where the file is now
    folder: Path  # where the file will be installed
    name: str | None = None  # the name that the file will have in the folder. None: unknown


@dataclass(frozen=True, slots=True)
class Placed:
    """A drop-in without a fault."""

    config: Config | None  # the folder with the drop-in. None: other files of it have faults
    replaces: Path | None  # the file that the drop-in replaces. None: it is new in the folder
    standing: tuple[Problem, ...] = ()  # the faults of other files in the folder


def load(given: DropIn, environ: Mapping[str, str], hostname: str) -> Placed:
    """Load the folder with the drop-in in its place.

    Raises ConfigError with every fault that the folder has only with the drop-in.
    """
    try:
        present = files.drop_ins(given.folder)
    except files.CannotRead as error:
        raise ConfigError((Problem(str(given.folder), 0, 0, "", str(error)),)) from None
    replaces = _replaced(given, present)
    try:
        config = loader.load(given.folder, environ, hostname, files=_in_place(given, present, replaces))
    except ConfigError as error:
        before = _problems(given.folder, environ, hostname, present)
        new = tuple(one for one in error.problems if one.file == str(given.file) or one not in before)
        if new:
            raise ConfigError(new) from None
        return Placed(None, replaces, error.problems)
    return Placed(config, replaces)


def _problems(
    folder: Path, environ: Mapping[str, str], hostname: str, files: Sequence[Path]
) -> tuple[Problem, ...]:
    try:
        loader.load(folder, environ, hostname, files=files)
    except ConfigError as error:
        return error.problems
    return ()


def _in_place(given: DropIn, present: Sequence[Path], replaces: Path | None) -> list[Path]:
    """Return the files of the folder with the drop-in, in the order of the names that they will have."""
    name = replaces.name if replaces is not None else given.name or given.file.name
    others = [(file.name, file) for file in present if file != replaces]
    return [file for _, file in sorted([*others, (name, given.file)])]


def _replaced(given: DropIn, present: Sequence[Path]) -> Path | None:
    """Return the file of the folder that the drop-in replaces. None: the drop-in is a new file.

    It is the file of the drop-in's name. If there is none, and no name is given, it is the file with which
    the drop-in shares most declarations. Declarations that it shares with a second file stay a fault.
    """
    for file in present:
        if file.name == (given.name or given.file.name):
            return file
    if given.name is not None:
        return None
    claims = _claims(given.file)
    shared = {file: len(claims & _claims(file)) for file in present}
    nearest = max(present, key=lambda file: shared[file], default=None)
    return nearest if nearest is not None and shared[nearest] else None


def _claims(file: Path) -> set[tuple[str, str]]:
    """Return the declarations of a file that no second file may have: sections, names of items, and keys."""
    report = Report(Places(str(file)))
    data = files.read(file, report).data
    with suppress(ConfigError):  # too many faults
        repeat(data, document(), report)
    claims = {("section", section) for section in data if section not in SECTIONS}
    for _, name, item in items_of(data):
        claims.add(("name", name))
        for what in ("key", "prefix"):
            if isinstance(item, dict) and isinstance(item.get(what), str):
                claims.add((what, item[what]))
    return claims
