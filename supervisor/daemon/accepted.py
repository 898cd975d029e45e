"""Keeps the last accepted configuration beside the records, so that a start can go on by it.

A file that is broken when the daemon is restarted would otherwise end on every node what a refused reload
leaves alone. The settings are kept with every default and variable filled in, a token of the file too: the
copy is for its owner alone, as the records are. Consul's own variables keep their secrets: a start reads them
anew. Only the daemon keeps a configuration, once it goes by it. A copy that was changed, that another machine
or host has made (a cloned disk), or that the checks of a file refuse counts as none.
"""

import json
import os
import zlib
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, get_type_hints

from supervisor.adapters.journal import identity_here
from supervisor.adapters.journal.copies import ACCEPTED, folder_of, newest
from supervisor.adapters.journal.serialize import from_plain, to_plain
from supervisor.config import Config, ConfigError
from supervisor.config.cross_checks import check_item
from supervisor.config.lease_checks import Surroundings
from supervisor.config.problems import Positions, Report
from supervisor.config.settings import ConsulSettings
from supervisor.core.settings import Settings

_KEPT = ("consul", "log", "items", "state_dir", "control", "http", "fleet", "page")  # of the configuration
_UNUSABLE = (
    *(OSError, ConfigError, RecursionError),
    *(KeyError, ValueError, TypeError, AttributeError, StopIteration),  # of from_plain
)


@dataclass(frozen=True, slots=True)
class Accepted:
    """The last accepted configuration. ``time``: when it was accepted, as in ``2026-11-24T14:02:11Z``."""

    config: Config
    time: str


def content_of(path: Path, config: Config) -> bytes:
    """Return what is to be kept of the configuration of the files at ``path``."""
    here = identity_here()
    content = {
        "path": str(path),
        "time": f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}",
        "machine": here.machine,
        "host": here.host,
        "withheld": sorted(config.withheld),
    }
    config = replace(config, consul=_without_variables(config.consul))
    content |= {name: to_plain(getattr(config, name)) for name in _KEPT}
    return json.dumps(content | {"checksum": _checksum(content)}).encode()


def find(state_dirs: Iterable[str], runtime: str, path: Path) -> Accepted | None:
    """Return what was kept in the first of these state_dirs for the files at ``path``. None: nothing usable.

    runtime: RUNTIME_DIRECTORY, where the newest records are. Blank: no folder in memory is known.
    """
    for state_dir in state_dirs:
        with suppress(*_UNUSABLE):
            return _accepted(newest(state_dir, folder_of(runtime, state_dir), ACCEPTED), path)
    return None


def _accepted(copy: bytes, path: Path) -> Accepted:
    """Return the configuration in this copy. Raises one of _UNUSABLE."""
    kept, here = json.loads(copy), identity_here()
    if kept.pop("checksum") != _checksum(kept):
        raise ValueError("it was changed")
    if (kept["path"], kept["machine"], kept["host"]) != (str(path), here.machine, here.host):
        raise ValueError("it is of other files, another machine or another host")
    kinds = get_type_hints(Config) | {"items": tuple[Settings, ...]}
    # A copy of an earlier release has neither fleet nor page.
    parts = {name: from_plain(kinds[name], kept[name]) for name in _KEPT if name in kept}
    parts["consul"] = _with_variables(parts["consul"])
    report = Report(Positions(str(path)))
    for settings in parts["items"]:
        check_item(settings, report, Surroundings(parts["consul"].leader_change_s))
    report.raise_if_any()
    return Accepted(Config(**parts, withheld=frozenset(kept["withheld"])), kept["time"])


def _checksum(content: dict[str, Any]) -> int:
    return zlib.crc32(json.dumps(content).encode())


def _without_variables(consul: ConsulSettings) -> ConsulSettings:
    token, http_auth = _secrets_of_environment()
    return replace(
        consul,
        token=None if consul.token == token else consul.token,
        http_auth=None if consul.http_auth == http_auth else consul.http_auth,
    )


def _with_variables(consul: ConsulSettings) -> ConsulSettings:
    token, http_auth = _secrets_of_environment()
    if consul.token or consul.token_file:
        token = consul.token
    return replace(consul, token=token, http_auth=consul.http_auth or http_auth)


def _secrets_of_environment() -> tuple[str | None, str | None]:
    return os.environ.get("CONSUL_HTTP_TOKEN") or None, os.environ.get("CONSUL_HTTP_AUTH") or None
