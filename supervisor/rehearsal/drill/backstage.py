"""The folder and the supervisors of a drill or demo on one machine, of which nothing is left behind."""

import asyncio
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from signal import SIGTERM

from supervisor.errors import NotPossible

REMOVED_WITHIN_S = 10.0  # a hook of a supervisor that was killed ends by itself, in milliseconds
RETRY_S = 0.05
POLL_S = 0.005
SERVICE_VARIABLES = ("NOTIFY_SOCKET", "WATCHDOG_PID", "WATCHDOG_USEC", "JOURNAL_STREAM", "STATE_DIRECTORY")
PACKAGE_PARENT = Path(__file__).parents[3]


@asynccontextmanager
async def temporary_folder(prefix: str) -> AsyncIterator[Path]:
    """Make a temporary folder, and remove it although hooks that still end may write into it.

    A supervisor that is killed leaves its hooks, and a recorder makes a file in the place of its FIFO.
    Raises NotPossible.
    """
    folder = Path(tempfile.mkdtemp(prefix=prefix))
    try:
        yield folder
    finally:
        give_up_at = time.monotonic() + REMOVED_WITHIN_S
        while why := _not_removed(folder):
            if time.monotonic() > give_up_at:
                raise NotPossible(f"cannot remove {folder}: {why}; remove it by hand")
            await asyncio.sleep(RETRY_S)


def _not_removed(folder: Path) -> str:
    """Remove the folder, and return why it is still there. Blank: it is gone."""
    try:
        shutil.rmtree(folder)
    except OSError as error:
        return str(error) if folder.exists() else ""
    return ""


async def until(happened: Callable[[], bool], within_s: float) -> bool:
    deadline = time.monotonic() + within_s
    while not happened():
        if time.monotonic() > deadline:
            return False
        await asyncio.sleep(POLL_S)
    return True


async def ended(child: subprocess.Popen[bytes], within_s: float) -> int:
    """Wait for the end of a child, kill it after ``within_s``, and return its exit code."""
    if not await until(lambda: child.poll() is not None, within_s):
        child.kill()
    return child.wait()


class Supervisors:
    """The supervisors of the nodes, and the commands to them. The caller must close it."""

    def __init__(self, folder: Path, environ: Mapping[str, str]) -> None:
        self._folder = folder
        self._environ = {
            name: value
            for name, value in environ.items()
            if not name.startswith("CONSUL_") and name not in SERVICE_VARIABLES
        }
        self._nodes: dict[str, subprocess.Popen[bytes]] = {}
        self._commands: list[subprocess.Popen[bytes]] = []

    @property
    def running(self) -> tuple[str, ...]:
        return tuple(node for node, child in self._nodes.items() if child.poll() is None)

    def start(self, node: str, module: str, *arguments: str, **variables: str) -> None:
        self._nodes[node] = self._child(f"{node}.log", module, arguments, variables)

    def _child(
        self, log: str, module: str, arguments: Iterable[str], variables: Mapping[str, str]
    ) -> subprocess.Popen[bytes]:
        """Start ``python -m MODULE``, which ends with this process and gets no Ctrl-C."""
        setpriv = shutil.which("setpriv")
        prefix = [setpriv, "--pdeathsig", "KILL", "--"] if setpriv else []
        # The children import this package, whether it is installed or run from a checkout.
        environ = {**self._environ, **variables, "PYTHONPATH": str(PACKAGE_PARENT)}
        argv = [*prefix, sys.executable, "-P", "-m", module, *arguments]
        null = subprocess.DEVNULL
        with (self._folder / log).open("ab") as output:
            return subprocess.Popen(
                argv, stdin=null, stdout=output, stderr=output, env=environ, start_new_session=True
            )

    def log(self, node: str) -> list[str]:
        path = self._folder / f"{node}.log"
        return path.read_text(errors="replace").splitlines() if path.exists() else []

    async def stop(self, node: str, within_s: float) -> int:
        """Stop a supervisor as systemd does, and return its exit code."""
        self._nodes[node].send_signal(SIGTERM)
        return await ended(self._nodes[node], within_s)

    def kill(self, node: str) -> None:
        self._nodes[node].kill()
        self._nodes[node].wait()

    def command(self, node: str, arguments: Iterable[str]) -> subprocess.Popen[bytes]:
        """Start a command to the supervisor of a node, as an operator does."""
        self._commands.append(self._child(f"{node}.command", "supervisor", arguments, {}))
        return self._commands[-1]

    async def stop_all(self, within_s: float) -> None:
        children = (*self._commands, *self._nodes.values())
        for child in children:
            child.send_signal(SIGTERM)
        for child in children:
            await ended(child, within_s)

    def close(self) -> None:
        """End everything that was started, by force if needed."""
        for child in (*self._commands, *self._nodes.values()):
            child.kill()
            child.wait()
