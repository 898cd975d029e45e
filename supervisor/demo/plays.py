"""The chapters: what is done to the supervisors, and what is waited for before the next is done.

A chapter is over when the hooks have told so; nothing here sleeps, and nothing happens on time alone.
"""

from supervisor.demo.acts import ELECTION, SEMAPHORE
from supervisor.demo.cast import Cast

NODES = ("node-a", "node-b", "node-c")


async def election(cast: Cast) -> None:
    """One of three leads; it crashes, comes back, and another one stops in order."""
    story = cast.story
    cast.begin(ELECTION, "An election")
    story.line("agent", f"an in-memory Consul agent listens on {cast.agent_url}")
    for name in NODES:
        cast.start(name)
    await cast.until("an election", lambda: cast.settled(NODES, 1))
    await cast.until("a webhook", lambda: cast.heard.get("webhook") == cast.holding)

    (crashed,) = cast.holding
    story.chapter(f"A crash: {crashed} is killed with -9")
    await cast.kill(crashed)
    story.line(crashed, "is dead: its session is renewed no more, and expires after 2 x ttl (2 s)", "1;31")
    others = _but(crashed)
    await cast.until("the expiry", lambda: cast.settled(others, 0))
    story.line("agent", "now keeps the key free for the lock-delay (4 s): time for whatever may still run")
    await cast.until("a failover", lambda: cast.settled(others, 1))

    story.chapter(f"{crashed} comes back, and waits")
    cast.start(crashed)
    await cast.until("its return", lambda: cast.settled(NODES, 1))

    (stopped,) = cast.holding
    story.chapter(f"A planned stop: systemctl stop on {stopped}")
    others = _but(stopped)
    await cast.stop(stopped)
    await cast.until("a hand-over", lambda: cast.settled(others, 1))
    await _end(cast, "The end of the election")


async def semaphore(cast: Cast) -> None:
    """Two of three have a slot; one of them leaves, and the third gets its slot."""
    cast.begin(SEMAPHORE, "A semaphore: three nodes want to rebuild, two may at once")
    for name in NODES:
        cast.start(name)
    await cast.until("two holders", lambda: cast.settled(NODES, 2))
    (waiter,) = (name for name in NODES if name not in cast.holding)
    cast.story.line(waiter, "waits: both slots are taken", "1;33")

    left = min(cast.holding)
    cast.story.chapter(f"{left} has rebuilt: systemctl stop on {left}")
    await cast.stop(left)
    await cast.until("the next holder", lambda: cast.settled(_but(left), 2))
    await _end(cast, "The end")


async def _end(cast: Cast, title: str) -> None:
    """All stop; who waits comes first, so that nobody takes over any more."""
    cast.story.chapter(title)
    for name in sorted(cast.running, key=lambda name: (name in cast.holding, name)):
        await cast.stop(name)
        cast.story.line(name, "stopped")


def _but(name: str) -> tuple[str, ...]:
    return tuple(other for other in NODES if other != name)
