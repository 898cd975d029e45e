"""Loads the configuration in a child process, so that the loop goes on meanwhile.

A thousand elections take half a second to read and to validate, in which a daemon would not renew its
sessions. The validator also stays out of the daemon's memory. The finished settings come back through a file
in memory.
"""

from collections.abc import Callable
from functools import partial
from pathlib import Path

from supervisor.adapters.filesystem.forked import call_in_child
from supervisor.config import Config, ConfigError, Problem

WITHIN_S = 30.0  # two thousand elections take a second; a machine may be many times slower

Load = Callable[[], Config]


async def load_in_child(load: Load, path: Path, within_s: float = WITHIN_S) -> Config:
    """Return the result of ``load`` for the configuration at ``path``, called in a child.

    Raises ConfigError as ``load`` does, and everything that ``call_in_child`` raises.
    """
    loaded = await call_in_child(str(path), partial(_loaded, load), within_s)
    if isinstance(loaded, Config):
        return loaded
    raise ConfigError(loaded)


def _loaded(load: Load) -> Config | tuple[Problem, ...]:
    try:
        return load()
    except ConfigError as error:
        return error.problems
