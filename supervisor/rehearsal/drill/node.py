"""The process of one supervisor of a drill: ``python -m supervisor.rehearsal.drill.node CONFIG NODE``.

CONFIG is a pickled Config in a file that only this user can read, so that neither arguments nor environment
carry a secret, and no duration is rounded by way of YAML.
"""

import asyncio
import os
import pickle
import sys
from dataclasses import replace
from pathlib import Path

from supervisor.adapters.journal.identity import place_here
from supervisor.adapters.runtime import signals
from supervisor.adapters.runtime.clock import boottime
from supervisor.config import Config
from supervisor.daemon.loop import Daemon
from supervisor.reporting.telemetry.log import STANDARD_ERROR, Log, reaches_journal


def main(path: str, node: str) -> int:
    config = pickle.loads(Path(path).read_bytes())
    assert isinstance(config, Config)

    async def loaded() -> Config:
        return config

    async def daemon() -> int:
        journal = reaches_journal(STANDARD_ERROR, os.environ)
        log = Log(config.log.level, config.log.format, boottime, journal=journal)
        # Nodes of one machine would never shoot each other.
        place = replace(place_here(), machine=node, host=node)
        return await Daemon(config, node, os.environ, log, load=loaded, place=place).run()

    return asyncio.run(daemon())


if __name__ == "__main__":
    signals.block()
    sys.exit(main(*sys.argv[1:]))
