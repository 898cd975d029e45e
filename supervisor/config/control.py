"""Resolves where commands reach the daemon: ``control_socket``, else systemd's folder, else the default.

The daemon and the commands must come to the same result, but a command knows less: it lacks the daemon's
environment and perhaps its rights, and the file may be wrong elsewhere. So a command looks at the keys
``control_socket`` and ``control_group`` alone.
"""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from supervisor.config.problems import Places, Report
from supervisor.config.settings import ControlSettings

PATH_BYTES_MAX = 107  # sockaddr_un.sun_path with its final NUL
KEYS = ("control_socket", "control_group")


def resolve(
    given: Mapping[str, Any], environ: Mapping[str, str], document: Mapping[str, Any], report: Report
) -> ControlSettings:
    """Return the settings of a file that the schema has accepted; report a path that is too long."""
    path, group = given.get("control_socket"), given.get("control_group")
    if path is None:
        return ControlSettings(_default(environ, document), group)
    if (size := len(os.fsencode(path))) > PATH_BYTES_MAX:
        report.refuse(("control_socket",), f"cannot be {size} bytes long: at most {PATH_BYTES_MAX}")
    return ControlSettings(path, group, configured=True)


def read_alone(path: Path | None, environ: Mapping[str, str], document: dict[str, Any]) -> ControlSettings:
    """Return the settings for a command, which reads them from the files at ``path``; None: it reads no file.

    Other faults of the files do not matter. Raises ConfigError when the files cannot be read, or when one of
    the two keys cannot be used.
    """
    if path is None:
        return ControlSettings(_default(environ, document))
    from supervisor.config import files

    found = Report(Places(str(path)))
    read = files.read(path, found)
    if not read.complete:
        found.raise_if_any()
    report = Report(found.places)
    given = {key: read.data[key] for key in KEYS if key in read.data}
    if given:
        from supervisor.config.validation import validate

        validate(given, document, report)
        report.raise_if_any()
    settings = resolve(given, environ, document, report)
    report.raise_if_any()
    return settings


def _default(environ: Mapping[str, str], document: Mapping[str, Any]) -> str:
    folder = environ.get("RUNTIME_DIRECTORY", "").partition(":")[0]
    default: str = document["properties"]["control_socket"]["default"]
    return f"{folder}/{Path(default).name}" if folder else default
