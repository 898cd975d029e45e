"""Keeps the last accepted configuration beside the records, so that a start can go on by it.

A file that is broken when the daemon is restarted would otherwise end on every node what a refused reload
leaves alone. The settings are kept with every default and variable filled in, a token of the file too: the
copy is for its owner alone, as the records are. Consul's own variables keep their secrets: a start reads them
anew. The copy is replaced whole or not at all.
"""

import json
import os
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from supervisor.config import Config
from supervisor.config.settings import ConsulSettings, ControlSettings, HttpSettings, LogSettings
from supervisor.core.settings import Settings
from supervisor.filesystem.reading import read_within
from supervisor.journal.serialize import from_plain, to_plain

NAME = "accepted.json"
_KINDS: dict[str, Any] = {
    "consul": ConsulSettings,
    "log": LogSettings,
    "items": tuple[Settings, ...],
    "state_dir": str,
    "control": ControlSettings | None,
    "http": HttpSettings | None,
}
BYTES_MAX = 64 * 1024 * 1024  # two thousand elections with all hooks that fit into a file take less


@dataclass(frozen=True, slots=True)
class Accepted:
    """The last accepted configuration. ``time``: when it was accepted, as in ``2026-11-24T14:02:11Z``."""

    config: Config
    time: str


def keep(path: Path, config: Config) -> None:
    """Keep the configuration of the files at ``path`` in its state_dir. It may wait for the disk.

    Raises OSError.
    """
    folder = Path(config.state_dir)
    folder.mkdir(mode=0o700, exist_ok=True)
    head = {
        "path": str(path),
        "time": f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}",
        "withheld": [*config.withheld],
    }
    config = replace(config, consul=_without_variables(config.consul))
    content = json.dumps(head | {name: to_plain(getattr(config, name)) for name in _KINDS})
    new = folder / f"{NAME}.{os.getpid()}"
    try:
        fd = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        with open(fd, "w", encoding="ascii") as file:
            file.write(content)
            file.flush()
            os.fsync(fd)
        new.replace(folder / NAME)
    except OSError:
        new.unlink(missing_ok=True)
        raise


def find(folders: Iterable[str], path: Path) -> Accepted | None:
    """Return what was kept in the first of these folders for the files at ``path``. None: nothing usable."""
    for folder in folders:
        with suppress(OSError, KeyError, ValueError, TypeError, AttributeError):
            kept = json.loads(read_within(f"{folder}/{NAME}", BYTES_MAX))
            if kept["path"] == str(path):
                parts = {name: from_plain(kind, kept[name]) for name, kind in _KINDS.items()}
                parts["consul"] = _with_variables(parts["consul"])
                return Accepted(Config(**parts, withheld=frozenset(kept["withheld"])), kept["time"])
    return None


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
