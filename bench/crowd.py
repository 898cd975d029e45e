"""A process that is several supervisors, each with a file, records and a control socket of its own.

Two hundred processes on one machine would wait for each other's CPU, because each wakes with every change of
the key, and waking a process costs more than its work. The supervisors share only the loop.

    python -m bench.crowd FILE...
"""

import asyncio
import os
import sys
from functools import partial
from pathlib import Path

from supervisor.config import Config, load
from supervisor.daemon.loop import Daemon
from supervisor.runtime.clock import boottime
from supervisor.telemetry.log import Log


async def crowd(paths: list[Path]) -> None:
    """Run the supervisors of these files until all have stopped."""
    daemons = []
    for path in paths:
        config = load(path, os.environ, path.stem)
        log = Log(config.log.level, config.log.format, boottime, journal=False)
        daemons.append(Daemon(config, path.stem, os.environ, log, load=partial(_same, config)))
    await asyncio.gather(*(daemon.run() for daemon in daemons))


async def _same(config: Config) -> Config:
    return config


if __name__ == "__main__":
    asyncio.run(crowd([Path(path) for path in sys.argv[1:]]))
