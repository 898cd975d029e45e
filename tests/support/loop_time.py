"""Time that passes at once on the clock of the running loop, so that no test waits for it."""

import asyncio


def skip(seconds: float) -> None:
    """Let so much time pass on the loop's clock: what was due within it is called in the next turn."""
    loop = asyncio.get_running_loop()
    now = loop.time
    loop.time = lambda: now() + seconds  # type: ignore[method-assign]
