"""The parts of all rows: a temporary folder, the compiled programs, agents. Leaving the lab ends all of them.

If this program is killed, the kernel sends SIGKILL to its processes (setpriv --pdeathsig). Each process has
a session of its own, so that Ctrl-C reaches only this program, which then cleans up.
"""

import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from itertools import count
from pathlib import Path
from types import TracebackType
from typing import Self

from bench.contender import Contender
from bench.stamps import PATIENCE_S, Stamps
from tests.support.consul import Agent
from tests.support.proxy import Proxy

ROOT = Path(__file__).resolve().parents[1]
LOOK_EVERY_S = 0.05
LOG_TAIL = 2000  # characters
AS_INSTALLED = {"PYTHONDONTWRITEBYTECODE": ""}
"""The environment of an installed product, where Python keeps compiled modules and does not compile them at
each start."""


class CannotMeasure(Exception):
    """A missing requirement of the bench. The text names it and the remedy."""


class Lab:
    """The lab of one run: ``with Lab(quick=…) as lab:``. ``quick``: few samples, without a verdict."""

    def __init__(self, *, quick: bool) -> None:
        self.quick = quick
        self._exits = ExitStack()

    def __enter__(self) -> Self:
        with self._exits:
            self.folder = Path(self._exits.enter_context(tempfile.TemporaryDirectory(prefix="bench-")))
            self.stamp = _compiled(self.folder, "stamp")
            self._exits = self._exits.pop_all()
        self._numbers = count(1)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._exits.close()

    def samples(self, full: int, quick: int) -> int:
        """Return the number of samples for this run."""
        return quick if self.quick else full

    def say(self, text: str) -> None:
        """Print progress on standard error, because standard output is for the table."""
        print(f"bench: {text}", file=sys.stderr, flush=True)

    def rig(self) -> "Rig":
        """Return a new rig with a folder of its own, for one measurement."""
        folder = self.folder / str(next(self._numbers))
        folder.mkdir()
        return Rig(folder, self.stamp)


class Rig:
    """The processes of one measurement. Leaving its ``with`` ends them, the youngest first."""

    def __init__(self, folder: Path, stamp: Path) -> None:
        self.folder = folder
        self.stamps = Stamps(folder / "stamps")
        self._stamp = stamp
        self._exits = ExitStack()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._exits.close()
        if isinstance(error, Exception):
            for log in sorted(self.folder.glob("*.log")):
                print(f"bench: the end of {log.name}:\n{log.read_text()[-LOG_TAIL:]}", file=sys.stderr)

    def agent(self, *, persistent: bool = False, config: Mapping[str, object] | None = None) -> Agent:
        """Start a Consul server in memory, or one with a data directory, and return it when it is ready."""
        return self._exits.enter_context(Agent(self.folder / "consul", persistent=persistent, config=config))

    def proxy(self, agent: Agent) -> Proxy:
        """Start a proxy that counts requests to the agent."""
        return self._exits.enter_context(Proxy(agent.host, agent.port))

    def contender(
        self, name: str, argv: Sequence[str], environ: Mapping[str, str] | None = None
    ) -> Contender:
        """Return a process that is not started yet."""
        own = str(self.folder / f"{name}.own")  # for a supervisor's records and its control socket
        places = {"STATE_DIRECTORY": own, "RUNTIME_DIRECTORY": own}
        environment = {**os.environ, **AS_INSTALLED, **places, **(environ or {})}
        log = self.folder / f"{name}.log"
        return self._exits.enter_context(Contender(name, argv, environment, ROOT, log))

    def control_socket(self, name: str) -> str:
        """Return the path of this supervisor's control socket."""
        return str(self.folder / f"{name}.own" / "control.sock")

    def stamping(self, who: str, what: str, *more: str) -> list[str]:
        """Return the command line of the stamp program."""
        return [str(self._stamp), str(self.stamps.path), who, what, *more]


def wait_until(holds: Callable[[], bool], what: str) -> None:
    """Wait until ``holds`` returns True. Raises TimeoutError after PATIENCE_S."""
    give_up_at = time.monotonic() + PATIENCE_S
    while not holds():
        if time.monotonic() > give_up_at:
            raise TimeoutError(f"not within {PATIENCE_S:g} s: {what}")
        time.sleep(LOOK_EVERY_S)


def _compiled(folder: Path, name: str) -> Path:
    """Compile this program and return its path.

    The program is static if the C library can be, because a dynamic linker takes 0.4 ms.
    """
    program = folder / name
    for options in (["-static"], []):
        try:
            _compile(name, [*options, "-o", str(program)])
        except CannotMeasure:
            if not options:
                raise
        else:
            return program
    raise AssertionError("the last try has returned or raised")


def _compile(name: str, options: Sequence[str]) -> None:
    compiler = shutil.which("cc")
    if compiler is None:
        raise CannotMeasure("no C compiler for its small programs: `apt install gcc libc6-dev` brings one")
    source = Path(__file__).with_name(f"{name}.c")
    argv = [compiler, "-O2", "-Wall", *options, str(source)]
    result = subprocess.run(argv, capture_output=True, text=True, check=False)
    if result.returncode != 0:
        raise CannotMeasure(f"{source.name} does not compile: {result.stderr.strip()}")
