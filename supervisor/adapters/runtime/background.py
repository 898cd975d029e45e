"""The tasks of a process that no other code awaits, such as an exchange with Consul.

An exception in such a task is a bug of ours, so it is reported as the loop reports one of its own.
"""

import asyncio
from collections.abc import Callable, Coroutine

Report = Callable[[asyncio.AbstractEventLoop, dict[str, object]], None]
"""Handles an unhandled exception: the handler that asyncio calls with the loop and a context."""


class Background:
    """Tasks in the background of one loop."""

    def __init__(self, report: Report) -> None:
        self._report = report
        self._tasks: set[asyncio.Task[None]] = set()

    def start(self, work: Coroutine[None, None, None]) -> None:
        """Run this to its end, or until ``cancel``."""
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._done)

    def cancel(self) -> None:
        """Cancel all tasks. Each may take a moment to end."""
        for task in tuple(self._tasks):
            task.cancel()

    async def ended(self) -> None:
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _done(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            self._report(asyncio.get_running_loop(), {"message": "a task failed", "exception": error})
