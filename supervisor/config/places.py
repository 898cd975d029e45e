"""Resolves where commands reach the daemon, and where it keeps its records.

The file says so, else the folder that systemd gives, else the default.
A command reads no file for it, unless it is told which, because a daemon whose file names another socket
leaves a link to that where commands look.
"""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from supervisor.config.problems import Report
    from supervisor.config.settings import ControlSettings

PATH_BYTES_MAX = 107  # sockaddr_un.sun_path with its final NUL
KEY = "control_socket"
DEFAULT = Path("/run/consul-supervisor/control.sock")
STATE_DIR = "/var/lib/consul-supervisor"
VARIABLE = "CONSUL_SUPERVISOR_SOCKET"


def control(given: Mapping[str, Any], environ: Mapping[str, str], report: "Report") -> "ControlSettings":
    """Return the settings of a file that the schema has accepted, and report a path that is too long."""
    from supervisor.config.settings import ControlSettings

    path, group, usual = given.get(KEY), given.get("control_group"), usual_socket(environ)
    if path is None:
        return ControlSettings(usual, group, link=usual)
    if (size := len(os.fsencode(path))) > PATH_BYTES_MAX:
        report.refuse((KEY,), f"cannot be {size} bytes long: at most {PATH_BYTES_MAX}")
    return ControlSettings(path, group, configured=True, link=usual)


def control_socket(path: Path | None, environ: Mapping[str, str]) -> str:
    """Return the control socket for a command to which the configuration at ``path`` is given.

    None: none is given, and no file is read. Raises ConfigError when the files cannot be read.
    """
    if path is None:
        return environ.get(VARIABLE) or usual_socket(environ)
    from supervisor.config import files
    from supervisor.config.problems import Positions, Report

    report = Report(Positions(str(path)))
    named = files.read(path, report).data.get(KEY, usual_socket(environ))
    if not isinstance(named, str):
        report.refuse((KEY,), "cannot be used: must be a path")
    report.raise_if_any()
    return str(named)


def usual_state_dir(environ: Mapping[str, str]) -> str:
    """Return the folder of the records of a daemon whose file names none."""
    return environ.get("STATE_DIRECTORY", "").partition(":")[0] or STATE_DIR


def usual_socket(environ: Mapping[str, str]) -> str:
    """Return the socket of a daemon whose file names none, which is where commands look."""
    folder = environ.get("RUNTIME_DIRECTORY", "").partition(":")[0]
    return f"{folder}/{DEFAULT.name}" if folder else str(DEFAULT)
