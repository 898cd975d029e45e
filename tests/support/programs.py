"""Programs in sh or Python that a test runs in a process of their own."""

import os
import subprocess
import sys
import textwrap
from pathlib import Path

from tests.support.captured import captured
from tests.support.supervisor import PATIENCE_S, ROOT

# A daemon that runs the file of its first argument and meets a bug: an exception with the text {words}.
BUGGY_DAEMON = """
    import asyncio, os, sys
    from pathlib import Path
    from supervisor.config import load
    from supervisor.adapters.runtime.clock import boottime
    from supervisor.daemon.loop import Daemon
    from supervisor.reporting.telemetry.log import Log

    async def main():
        def boom():
            raise ValueError({words})

        config = load(Path(sys.argv[1]), os.environ, "here")
        daemon = Daemon(config, "here", os.environ, Log("debug", "json", boottime), load=lambda: None)
        asyncio.get_running_loop().call_later(0.3, boom)
        return await daemon.run()

    sys.exit(asyncio.run(main()))
"""


def script(path: Path, text: str) -> Path:
    """Write a program of sh, and return its path."""
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return path


def run_program(program: str, *arguments: str) -> "subprocess.CompletedProcess[str]":
    """Run the program, which may be indented, and return how it ended and what it wrote."""
    environ = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "PYTHONDONTWRITEBYTECODE": "1"}
    return captured(
        [sys.executable, "-W", "error", "-c", textwrap.dedent(program), *arguments],
        cwd=ROOT,
        env=environ,
        timeout=PATIENCE_S,
    )
