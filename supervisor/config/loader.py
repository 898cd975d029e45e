"""Loads a configuration: the steps from a path to a Config, or to every reason why there is none.

Each step reports what it cannot use and goes on, so that one run shows every problem. Later steps skip what
an earlier step has refused, because they would only refuse it again.
"""

from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from supervisor.config import build, consul, cross_checks, http, lease_checks, places
from supervisor.config import files as config_files
from supervisor.config.build import default_values
from supervisor.config.defaults import apply_defaults, copy_hooks
from supervisor.config.environment import Variables, fill_in, leave_out_unset, secret_variables
from supervisor.config.for_each import repeat
from supervisor.config.notification import seconds_of, unit_watchdog_s
from supervisor.config.problems import SECTIONS, ConfigError, Positions, Report, items_of
from supervisor.config.schema import Defaults
from supervisor.config.schema import document as own_schema
from supervisor.config.schema_errors import validate
from supervisor.config.settings import Config, LogSettings
from supervisor.core.settings import ItemSettings


def load(
    path: Path,
    environ: Mapping[str, str],
    hostname: str,
    *,
    asked: str | None = None,
) -> Config:
    """Load the configuration at ``path``, a file or a folder of drop-ins.

    hostname: the value of ``${HOSTNAME}``.
    asked: the item that a query is about, or EVERY_ITEM. Texts that refer to unset variables are left out,
        because only the daemon's unit may set them, but not those in ``consul`` and in the item's key or
        prefix. In names of sessions ANY_TEXT stands for each variable. None: the whole file is needed.
    Raises ConfigError with every problem at once.
    """
    document = own_schema()
    report = Report(Positions(str(path)))
    defaults = Defaults(document)
    variables = Variables(environ, hostname)
    values = default_values(defaults, variables)  # first, because the file may use up FILLED_CHARS_MAX
    read = _read(path, document, variables, report, asked)
    withheld = secret_variables(read.data)
    valid = _validated(read, variables, document, report)
    if url := valid.get("http", {}).get("public_url"):
        values = {kind: {**value, "Url": url} for kind, value in values.items()}
    full = apply_defaults(valid, defaults, values, hostname)
    section = valid.get("consul", {})
    items = _items(full, report, consul.leader_change_s(section, defaults), environ)
    _check_data(read, report, defaults, is_whole=asked is None)
    if not report.broken("consul"):
        settings_of_consul = consul.resolve(section, defaults, environ, report)
    control_settings = places.control(valid, environ, report)
    http_settings = http.resolve(valid.get("http"), report)
    report.raise_if_any()
    return Config(
        consul=settings_of_consul,
        log=LogSettings(**full["log"]),
        items=items,
        state_dir=valid.get("state_dir") or places.usual_state_dir(environ),
        warnings=tuple(sorted(report.warnings)),
        withheld=withheld,
        control=control_settings,
        http=http_settings,
        fleet=build.fleet({**defaults.of("fleet"), **valid["fleet"]}) if "fleet" in valid else None,
        page=valid.get("http", {}).get("public_url", ""),
        positions=report.positions,
    )


def _read(
    path: Path, document: dict[str, Any], variables: Variables, report: Report, asked: str | None
) -> config_files.Source:
    """Read the files, with each item of for_each, and in each item its hooks or those of ``defaults``."""
    read = config_files.read(path, report)
    repeat(read.data, document, report)
    copy_hooks(read.data, report.positions)
    if asked is not None:
        leave_out_unset(read.data, variables, asked)
    return read


def _check_data(read: config_files.Source, report: Report, defaults: Defaults, *, is_whole: bool) -> None:
    """Report what raw data show, whatever fault is elsewhere. A query's data may lack keys."""
    if is_whole:
        keys = defaults.of("election")["key"], defaults.of("semaphore")["prefix"]
        cross_checks.check_keys(read.data, report, *keys)
    cross_checks.check_ambiguous(read.ambiguous, report)
    cross_checks.check_bodies(read.data, report)


def _items(
    full: Mapping[str, Any], report: Report, leader_change_s: float, environ: Mapping[str, str]
) -> tuple[ItemSettings, ...]:
    unit = unit_watchdog_s(environ), seconds_of("TIMEOUT_START_USEC", environ)
    around = lease_checks.Surroundings(leader_change_s, *unit)
    elections: list[ItemSettings] = [build.election(each) for each in full["elections"].values()]
    items = (*elections, *(build.semaphore(each) for each in full["semaphores"].values()))
    for settings in items:
        cross_checks.check_item(settings, report, around)
    lease_checks.check_reads(items, report)
    lease_checks.check_spread(items, report)
    lease_checks.check_fences(elections, report)
    return items


def _validated(
    read: config_files.Source, variables: Variables, document: dict[str, Any], report: Report
) -> dict[str, Any]:
    if read.complete and not any(section in read.data for section in SECTIONS):
        report.refuse((), "cannot be used: it has no elections and no semaphores, declare at least one")
    fill_in(read.data, variables, report)
    validate(read.data, document, report)
    return _valid_part(read.data, report)


def items_at(path: Path) -> list[tuple[str, str]]:
    """Return kind and name of each item in files that may have any fault."""
    report = Report(Positions(str(path)))
    data = config_files.read(path, report).data
    with suppress(ConfigError):  # too many faults
        repeat(data, own_schema(), report)
    return [(section.removesuffix("s"), str(name)) for section, name, _ in items_of(data)]


def state_dirs_of(path: Path, environ: Mapping[str, str]) -> tuple[str, ...]:
    """Return each folder that a file, which may have any fault, seems to name as ``state_dir``.

    A file that names none has the folder that the environment or the default names.
    """
    given = config_files.read(path, Report(Positions(str(path)))).data.get("state_dir")
    named = [given] if isinstance(given, str) else []
    named += config_files.paths_named(path, "state_dir")
    usable = [name for name in named if name.startswith("/") and "\0" not in name]
    return tuple(dict.fromkeys(usable)) or (places.usual_state_dir(environ),)


def _valid_part(data: dict[str, Any], report: Report) -> dict[str, Any]:
    """Return the sections and items that have no problem so far. No item: ``defaults`` has a problem."""
    valid = {key: section for key, section in data.items() if not report.broken(key)}
    for section in SECTIONS:
        items: dict[str, Any] = {} if report.broken("defaults") else data.get(section, {})
        named = items.items() if isinstance(items, dict) else ()
        valid[section] = {name: given for name, given in named if not report.broken(section, name)}
    return valid
