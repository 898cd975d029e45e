"""Resolves where commands reach the daemon, by ``control_socket``, else systemd's folder, else the default.

The daemon and the commands must come to the same result, but a command lacks the daemon's environment and
perhaps its rights, and a file may be half saved. So a command reads only the key ``control_socket``.
"""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from supervisor.config.problems import ConfigError, Positions, Report
from supervisor.config.schema import document as own_schema

if TYPE_CHECKING:
    from supervisor.config.settings import ControlSettings

PATH_BYTES_MAX = 107  # sockaddr_un.sun_path with its final NUL
KEY = "control_socket"


def resolve(
    given: Mapping[str, Any], environ: Mapping[str, str], document: Mapping[str, Any], report: Report
) -> "ControlSettings":
    """Return the settings of a file that the schema has accepted, and report a path that is too long."""
    from supervisor.config.settings import ControlSettings

    path, group = given.get(KEY), given.get("control_group")
    if path is None:
        return ControlSettings(_default(environ, document), group)
    if (size := len(os.fsencode(path))) > PATH_BYTES_MAX:
        report.refuse((KEY,), f"cannot be {size} bytes long: at most {PATH_BYTES_MAX}")
    return ControlSettings(path, group, configured=True)


def control_socket(path: Path | None, environ: Mapping[str, str]) -> tuple[str, str]:
    """Return the control socket for a command, and why the daemon may have another one.

    path: a file or a folder. None: no file is read, and the environment or the default decides.
    Blank: the files leave no doubt. Faults elsewhere in the files do not matter. Where the files have a fault
    that may hide the key, the result is the socket of a line that seems to give it, else the default.
    Raises ConfigError when ``path`` does not exist.
    """
    default = _default(environ, own_schema())
    if path is None:
        return default, ""
    from supervisor.config import files

    report = Report(Positions(str(path)))
    read = files.read(path, report)
    if read.complete and KEY not in read.data:
        return default, ""
    for name in (read.data.get(KEY), *files.paths_named(path, KEY)):
        if isinstance(name, str) and name.startswith("/") and len(os.fsencode(name)) <= PATH_BYTES_MAX:
            return name, ""
    if read.complete:
        report.refuse((KEY,), "cannot be used")
    error = ConfigError(tuple(report.problems))
    if not path.exists():
        raise error
    return default, error.in_short


def _default(environ: Mapping[str, str], document: Mapping[str, Any]) -> str:
    folder = environ.get("RUNTIME_DIRECTORY", "").partition(":")[0]
    default: str = document["properties"][KEY]["default"]
    return f"{folder}/{Path(default).name}" if folder else default
