"""Resolves where commands reach the daemon, by ``control_socket``, else systemd's folder, else the default.

The daemon and the commands must come to the same result, but a command lacks the daemon's environment and
perhaps its rights, and the file may have faults elsewhere. So a command reads only the keys
``control_socket`` and ``control_group``.
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
    """Return the settings of a file that the schema has accepted, and report a path that is too long."""
    path, group = given.get("control_socket"), given.get("control_group")
    if path is None:
        return ControlSettings(_default(environ, document), group)
    if (size := len(os.fsencode(path))) > PATH_BYTES_MAX:
        report.refuse(("control_socket",), f"cannot be {size} bytes long: at most {PATH_BYTES_MAX}")
    return ControlSettings(path, group, configured=True)


def read_alone(path: Path | None, environ: Mapping[str, str], document: dict[str, Any]) -> ControlSettings:
    """Return the settings for a command, from the files at ``path``.

    path: a file or a folder. None: no file is read, and the environment or the default decides.
    Raises ConfigError when the files cannot be read, or when one of the two keys cannot be used. Other
    faults of the files do not matter.
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
