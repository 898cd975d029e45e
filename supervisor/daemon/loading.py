"""Loads the configuration in a child process, so that the loop goes on meanwhile.

A thousand elections take half a second to read and to validate, in which a daemon would not renew its
sessions. The validator also stays out of the daemon's memory. The finished settings come back through a file
in memory.
"""

import os
import signal
from collections.abc import Callable
from functools import partial
from pathlib import Path

from supervisor.config import Config, ConfigError, Problem
from supervisor.filesystem.forked import call_in_child

WITHIN_S = 30.0  # two thousand elections take a second; a machine may be many times slower

Load = Callable[[], Config]
Keep = Callable[[Config], None]


async def load_in_child(
    load: Load, path: Path, within_s: float = WITHIN_S, keep: Keep | None = None
) -> Config:
    """Return the result of ``load`` for the configuration at ``path``, called in a child.

    keep: called with the result in a process of its own, for whose end nobody waits.
    Raises ConfigError as ``load`` does, and everything that ``call_in_child`` raises.
    """
    loaded = await call_in_child(str(path), partial(_loaded, load, keep), within_s)
    if isinstance(loaded, Config):
        return loaded
    raise ConfigError(loaded)


def _loaded(load: Load, keep: Keep | None) -> Config | tuple[Problem, ...]:
    try:
        config = load()
    except ConfigError as error:
        return error.problems
    if keep is not None and os.fork() == 0:
        signal.alarm(int(WITHIN_S))
        try:
            keep(config)
        finally:
            os._exit(0)
    return config
