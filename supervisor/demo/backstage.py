"""The folder and the child processes of a show on one machine, of which nothing is left behind."""

import asyncio
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

from supervisor.errors import NotPossible

REMOVED_WITHIN_S = 10.0  # a hook of a supervisor that was killed ends by itself, in milliseconds
RETRY_S = 0.05
POLL_S = 0.005
PACKAGE_PARENT = Path(__file__).parents[2]


@asynccontextmanager
async def temporary_folder(prefix: str) -> AsyncIterator[Path]:
    """Make a temporary folder, and remove it although hooks that still end may write into it.

    A supervisor that is killed leaves its hooks, and ``>hooks`` makes a file in the place of a FIFO.
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


def start_child(
    module: str, arguments: Iterable[str], log: Path, environ: Mapping[str, str], *, own_session: bool = False
) -> subprocess.Popen[bytes]:
    """Start ``python -m MODULE`` with its output in ``log``. The child ends with this process.

    own_session: whether a Ctrl-C at the terminal must not reach the child.
    """
    setpriv = shutil.which("setpriv")
    prefix = [setpriv, "--pdeathsig", "KILL", "--"] if setpriv else []
    with log.open("ab") as output:
        return subprocess.Popen(
            [*prefix, sys.executable, "-P", "-m", module, *arguments],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            # The children import this package, whether it is installed or run from a checkout.
            env={**environ, "PYTHONPATH": str(PACKAGE_PARENT)},
            start_new_session=own_session,
        )


async def ended(child: subprocess.Popen[bytes], within_s: float) -> int:
    """Wait for the end of a child, kill it after ``within_s``, and return its exit code."""
    deadline = time.monotonic() + within_s
    while (code := child.poll()) is None:
        if time.monotonic() > deadline:
            child.kill()
        await asyncio.sleep(POLL_S)
    return code
