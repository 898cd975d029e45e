"""A rehearsal anyone can watch: three supervisors, an election with its failover, a semaphore.

Everything is real but the Consul: the embedded agent serves in this process, because it allows
lock-delays and TTLs short enough to watch. The supervisors are processes of their own, their hooks
are commands that write to a FIFO, one of them a webhook that arrives here. Whatever is started is
ended, whatever is written lies in one temporary folder. It tells what it sees and decides nothing
for the supervisors.

    story.py  lines with their times
    acts.py   what the supervisors' files say, and the words for what their hooks tell
    cast.py   the agent, the receiver of webhooks, the supervisors; what was heard of them
    plays.py  the chapters, one after the other
"""

import asyncio
import shutil
import signal
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

from supervisor.demo.cast import Cast, DemoFailed
from supervisor.demo.plays import election, semaphore
from supervisor.demo.story import Story

__all__ = ["DemoFailed", "demo"]

REMOVED_WITHIN_S = 10.0  # a hook of a supervisor that was killed ends by itself, in milliseconds
LOOK_AGAIN_S = 0.05


async def demo(say: Callable[[str], None], *, colours: bool, environ: Mapping[str, str]) -> None:
    """Tell the whole story, in some ten seconds. Raises DemoFailed."""
    task = asyncio.current_task()
    assert task is not None
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, task.cancel)  # so that all is ended
    say("Three nodes want to lead, and one may; then they want to rebuild, and two may.")
    say("This is what their hooks are told, and when.")
    async with _folder() as folder:
        cast = Cast(folder, Story(say, colours=colours), environ)
        try:
            await cast.open()
            await election(cast)
            await semaphore(cast)
        finally:
            await cast.close()
    say("")
    say("All is stopped; nothing is left behind.")


@asynccontextmanager
async def _folder() -> AsyncIterator[Path]:
    """A temporary folder; it is removed although hooks that are still ending write into it.

    A supervisor that is killed leaves its hooks behind, and ``>hooks`` makes a file where the FIFO was.
    """
    folder = Path(tempfile.mkdtemp(prefix="consul-supervisor-demo-"))
    try:
        yield folder
    finally:
        give_up_at = time.monotonic() + REMOVED_WITHIN_S
        while why_not := _not_removed(folder):
            if time.monotonic() > give_up_at:
                raise DemoFailed(f"cannot remove {folder}: {why_not}; remove it by hand")
            await asyncio.sleep(LOOK_AGAIN_S)


def _not_removed(folder: Path) -> str:
    """Why the folder is still there; empty when it is gone."""
    try:
        shutil.rmtree(folder)
    except OSError as error:
        return str(error) if folder.exists() else ""
    return ""
