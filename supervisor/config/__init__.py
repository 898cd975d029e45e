"""The configuration: YAML files to frozen settings, and every refusal with its position.

    problems.py     what is wrong, where, and the remedy
    files.py        a file, or a directory's files merged
    yaml_reader.py  YAML to plain values, each with its position; no tags, anchors or aliases
    for_each.py     one item for each value of for_each
    environment_file.py the variables that the unit gives to the daemon, for commands
    environment.py  ${NAME} in the few texts that may use it
    schema.py       the JSON Schema and the defaults that it gives
    schema_errors.py values against the schema, by jsonschema
    messages.py     each deviation as a message for the operator
    defaults.py     the hooks of defaults for each item without its own; every default filled in
    build.py        complete values to settings
    disk_check.py   the command of candidate_check with disk
    cross_checks.py rules between settings, which no schema can express
    lease_checks.py those between times
    hook_checks.py  texts of hooks that probably mean something else
    consul.py       how Consul is reached, by the file or else by Consul's own variables
    places.py       where commands reach the daemon, and where it keeps its records
    http.py         where the daemon listens over TCP
    settings.py     Config and its parts
    notification.py what systemd tells of the unit
    formats/        text formats that several packages share
    loader.py       these steps in their order
    command_line.py the item of one command line, for lock

The package reads files. It sends no request and starts no program. YAML, JSON Schema and the classes of the
settings are imported when a file is loaded, because most commands need none of them.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from supervisor.config.problems import ConfigError, Problem
from supervisor.config.schema import document as schema
from supervisor.config.schema import text as schema_text

if TYPE_CHECKING:
    from supervisor.config.settings import (
        Config,
        ConsulSettings,
        ControlSettings,
        FleetSettings,
        HttpSettings,
        LogSettings,
    )

__all__ = [
    "Config",
    "ConfigError",
    "ConsulSettings",
    "ControlSettings",
    "FleetSettings",
    "HttpSettings",
    "LogSettings",
    "Problem",
    "load",
    "schema",
    "schema_text",
]


def __getattr__(name: str) -> Any:
    """Import what only a file needs, when it is asked for."""
    if name not in __all__:
        raise AttributeError(name)
    from supervisor.config import settings

    return getattr(settings, name)


def load(path: Path, environ: Mapping[str, str], hostname: str, *, asked: str | None = None) -> "Config":
    """Load the configuration at ``path`` as ``loader.load`` does. Raises ConfigError with every problem."""
    from supervisor.config import loader

    return loader.load(path, environ, hostname, asked=asked)
