"""An embedded agent as a process, for tests that use it as users do."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.consul import Client
from tests.support.patience import PATIENCE_S

STOP_S = PATIENCE_S
ROOT = Path(__file__).resolve().parents[3]
PROGRAM = """
import asyncio
from supervisor.rehearsal.devagent.agent import Settings, run
from tests.support.patience import PATIENCE_S
asyncio.run(run(0, Settings(), lambda text: print(text, flush=True)))
"""


@pytest.fixture
def embedded() -> Iterator[Client]:
    """Return a running embedded agent of this test alone."""
    argv = ["setpriv", "--pdeathsig", "KILL", sys.executable, "-W", "error", "-c", PROGRAM]
    environment = {"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT)}
    with subprocess.Popen(
        argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment, text=True
    ) as child:
        assert child.stdout is not None and child.stderr is not None
        said = ""
        while "listens on" not in said:
            line = child.stdout.readline()
            assert line, child.stderr.read()
            said += line
        assert "not Consul" in said
        yield Client("127.0.0.1", int(said.rpartition(":")[2]))
        child.send_signal(signal.SIGTERM)
        assert child.wait(STOP_S) == 0
        assert child.stderr.read() == ""
