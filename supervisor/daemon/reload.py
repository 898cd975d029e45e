"""Reads the configuration while the daemon runs, and checks all of it before anything changes.

A child loads it, because a thousand elections take half a second to read and to validate, in which a daemon
would not renew its sessions. The validator also stays out of the daemon's memory. This module then finds the
changes that the running process cannot follow, and the settings of the process, beside its items, that have
changed. Nothing is changed here, and no part of a refused configuration may ever get through.
"""

from collections.abc import Awaitable, Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from supervisor.adapters.filesystem.forked import ChildFailed, call_in_child
from supervisor.config import Config, ConfigError, Problem

if TYPE_CHECKING:  # because a start imports this module before the child that loads the configuration
    from supervisor.core.reload import ReloadEffect

WITHIN_S = 30.0  # two thousand elections take a second; a machine may be many times slower
STATE_DIR = "state_dir"
KILLED = (
    "End it with SIGKILL and start it again (systemctl restart does both): the next process keeps"
    " what this one holds"
)
STOPPED = (
    "Stop it and start it (systemctl stop, then systemctl start), which gives up what it holds: the next "
    "process looks for records in the new state_dir"
)


@dataclass(frozen=True, slots=True)
class Reloaded:
    """The result of a reload."""

    effects: "Mapping[str, ReloadEffect]"  # the effect on each item, by name
    process: tuple[str, ...]  # a line for each changed setting of the process
    keys: Mapping[str, str]  # by restarted item: those that cost it what it held, in brackets


class CannotReload(Exception):
    """The reload is refused, and nothing changes."""

    def __init__(self, text: str, lines: tuple[str, ...] = (), *, faulty: bool = True) -> None:
        super().__init__(text)
        self.lines = lines  # every fault of the configuration
        self.faulty = faulty  # whether the configuration is at fault


async def load_in_child(load: Callable[[], Config], path: Path, within_s: float = WITHIN_S) -> Config:
    """Return the result of ``load`` for the configuration at ``path``, called in a child.

    Raises ConfigError as ``load`` does, and everything that ``call_in_child`` raises.
    """
    loaded = await call_in_child(str(path), partial(_loaded, load), within_s)
    if isinstance(loaded, Config):
        return loaded
    raise ConfigError(loaded)


def _loaded(load: Callable[[], Config]) -> Config | tuple[Problem, ...]:
    try:
        return load()
    except ConfigError as error:
        return error.problems


async def read_again(load: Callable[[], Awaitable[Config]], running: Config) -> Config:
    """Return the configuration as it is now.

    Raises CannotReload when it cannot be read, has faults, or changes what a running process cannot follow.
    """
    try:
        config = await load()
    except (ChildFailed, OSError) as error:
        raise CannotReload(f"cannot reload: {_why(error)}; nothing changes", faulty=False) from None
    except ConfigError as error:
        lines = tuple(str(error).splitlines())
        raise CannotReload("cannot reload: the configuration has faults, nothing changes", lines) from None
    if fixed := tuple(_fixed(running, config)):
        remedy = STOPPED if STATE_DIR in fixed else KILLED
        why = f"{', '.join(fixed)} changed, which the running process cannot follow"
        raise CannotReload(f"cannot reload: {why}; nothing changes. {remedy}")
    return config


def _why(error: ChildFailed | OSError) -> str:
    """Return why the configuration could not be read, without a word about its content."""
    if isinstance(error, ChildFailed):
        return str(error)
    if error.filename is None:
        return f"no process can be started to read the configuration: {error.strerror}"
    return f"{error.filename}: {error.strerror}"


def changes_of(running: Config, config: Config) -> Iterator[str]:
    """Yield a line for each changed setting of the process, with old and new value unless it is a secret."""
    shown = (
        ("log.level", running.log.level, config.log.level),
        ("log.format", running.log.format, config.log.format),
        ("http.listen", running.http, config.http),
        ("fleet.prefix", running.fleet and running.fleet.prefix, config.fleet and config.fleet.prefix),
        ("fleet.service", running.fleet and running.fleet.service, config.fleet and config.fleet.service),
        ("consul.token_file", running.consul.token_file, config.consul.token_file),
    )
    for name, before, after in shown:
        if before != after:
            yield f"{name}: {before or 'none'} -> {after or 'none'}"
    if running.consul.token != config.consul.token:
        yield "consul.token: changed"


def _fixed(running: Config, config: Config) -> Iterator[str]:
    """Yield each changed setting that a running process cannot follow.

    Records depend on how Consul is reached, and other programs find this process by the other settings.
    """
    tokenless = (replace(each.consul, token=None, token_file=None) for each in (running, config))
    before, after = tokenless
    for name in ("address", "datacenter", "namespace", "partition", "tls"):
        if getattr(before, name) != getattr(after, name):
            yield f"consul.{name}"
    if running.state_dir != config.state_dir:
        yield STATE_DIR
    if running.control != config.control:
        yield "control_socket or control_group"
