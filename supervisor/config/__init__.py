"""The configuration: YAML files to frozen settings, and every refusal with its place.

    problems.py     what is wrong, where, and the remedy
    files.py        a file, or a directory's files merged
    yaml_reader.py  YAML to plain values, each with its place; nothing clever gets through
    environment.py  ${NAME} in the few texts that may use it
    literal.py      texts in which ${ is a mistake, because nobody fills it in
    schema.py       the JSON Schema and the defaults that it gives
    validation.py   values against the schema
    schema_errors.py what jsonschema finds in values that do not conform
    messages.py     each deviation as a message for the operator
    defaults.py     every default filled in, in one pass
    build.py        complete values to settings
    cross_checks.py what must hold between settings
    consul.py       how Consul is reached: the file, else Consul's own variables
    control.py      where commands reach the daemon: the file, else systemd's folder
    http.py         where the daemon listens over TCP
    settings.py     Config and its parts
    loader.py       these steps in their order
    drop_in.py      a lone file, as if it stood in its folder already

The package reads files and nothing else: it sends Consul nothing and runs nothing. YAML and JSON Schema
are imported when a file is loaded, because most commands need neither.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from supervisor.config import consul as _consul
from supervisor.config import control as _control
from supervisor.config.problems import ConfigError, Problem
from supervisor.config.schema import Defaults as _Defaults
from supervisor.config.schema import document as schema
from supervisor.config.schema import text as schema_text
from supervisor.config.settings import Config, ConsulSettings, ControlSettings, HttpSettings, LogSettings

if TYPE_CHECKING:
    from supervisor.config.drop_in import Placed

__all__ = [
    "Config",
    "ConfigError",
    "ConsulSettings",
    "ControlSettings",
    "HttpSettings",
    "LogSettings",
    "Problem",
    "consul_settings",
    "control_settings",
    "load",
    "load_drop_in",
    "load_for_question",
    "schema",
    "schema_text",
    "state_dir_without_file",
    "state_dirs_of",
]


def load(path: Path, environ: Mapping[str, str], hostname: str) -> Config:
    """Load the configuration at ``path``, a file or a folder of drop-ins.

    ``hostname`` is what ``${HOSTNAME}`` stands for. Raises ConfigError with every problem at once.
    """
    from supervisor.config import loader

    return loader.load(path, environ, hostname, schema())


def load_for_question(path: Path, name: str, environ: Mapping[str, str], hostname: str) -> Config:
    """Load the configuration at ``path`` for a query about the item ``name``.

    Texts that refer to unset variables are left out, because only the daemon's unit may set those variables.
    Texts in ``consul`` and in the key or prefix of the item are not left out.

    Raises ConfigError with every problem at once.
    """
    from supervisor.config import loader

    return loader.load(path, environ, hostname, schema(), asked=name)


def load_drop_in(
    file: Path, folder: Path, name: str | None, environ: Mapping[str, str], hostname: str
) -> "Placed":
    """Load the configuration in ``folder`` with ``file`` in it as ``name``.

    ``name`` None: in the place of the file's last version.

    Raises ConfigError with every problem that the folder does not have without the file.
    """
    from supervisor.config import drop_in

    return drop_in.load(drop_in.DropIn(file, folder, name), environ, hostname, schema())


def state_dirs_of(path: Path, environ: Mapping[str, str]) -> tuple[str, ...]:
    """Return where the records of the configuration at ``path`` may be, whatever is wrong with it."""
    from supervisor.config import loader

    return loader.state_dirs_of(path, environ, schema())


def state_dir_without_file(environ: Mapping[str, str]) -> str:
    """Return where the records are of a configuration that names no ``state_dir``."""
    from supervisor.config import build

    return build.state_dir({}, schema()["properties"]["state_dir"]["default"], environ)


def consul_settings(environ: Mapping[str, str]) -> ConsulSettings:
    """Return how the environment alone says to reach Consul, for commands that read no file.

    Raises ConfigError when a variable cannot be used.
    """
    return _consul.from_environment(_Defaults(schema()), environ)


def control_settings(path: Path | None, environ: Mapping[str, str]) -> ControlSettings:
    """Return where the daemon of the configuration at ``path`` takes commands; None: a daemon without a file.

    Other faults of the file do not matter. Raises ConfigError.
    """
    return _control.read_alone(path, environ, schema())
