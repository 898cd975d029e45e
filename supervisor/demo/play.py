"""The election and the semaphore, chapter by chapter.

A chapter ends when the hooks have reported it. Nothing here happens after a fixed time. The times in the
configurations are short, so that they can be watched: another node leads at most 2 x ttl + lock_delay = 6 s
after a crash. Real configurations have longer times.
"""

import asyncio
import signal
from collections.abc import Callable, Mapping

from supervisor.demo.backstage import temporary_folder
from supervisor.demo.stage import Act, DemoCluster

NODES = ("node-a", "node-b", "node-c")

_HOOKS = """\
    value: "{node}"
    on_acquire:
      - {{shell: '{report}', kill_after: 100ms}}
    on_lose:
      - {{shell: '{report}', timeout: 500ms, kill_after: 100ms}}
    on_change:
      - {{shell: '{report}'}}
"""
_ELECTION = """\
consul: {{address: "{agent}"}}
elections:
  demo:
    session: {{ttl: 1s, lock_delay: 4s}}
"""
_WEBHOOK = """\
      - {{webhook: "{webhook}"}}
"""
_SEMAPHORE = """\
consul: {{address: "{agent}"}}
semaphores:
  rebuild:
    limit: 2
    session: {{ttl: 1s}}
    prune_delay: 4s
"""
ELECTION = Act(_ELECTION + _HOOKS + _WEBHOOK, "I lead", "leading", "the key is released", ("leads", "lead"))
SEMAPHORE = Act(
    _SEMAPHORE + _HOOKS, "I may rebuild", "rebuilding", "the slot is given back", ("rebuilds", "rebuild")
)


async def play(say: Callable[[str], None], *, colours: bool, environ: Mapping[str, str]) -> None:
    """Show everything, in about ten seconds. Raises DemoFailed.

    say: prints a line.
    colours: whether the terminal shows colours.
    environ: the environment of the supervisors.
    """
    task = asyncio.current_task()
    assert task is not None
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, task.cancel)  # so that everything is ended
    say("Three nodes want to lead, and one may; then they want to rebuild, and two may.")
    say("This is what their hooks are told, and when.")
    async with temporary_folder("consul-supervisor-demo-") as folder:
        stage = DemoCluster(folder, say, colours=colours, environ=environ)
        try:
            await stage.open()
            await _election(stage)
            await _semaphore(stage)
        finally:
            await stage.close()
    say("")
    say("All is stopped; nothing is left behind.")


async def _election(stage: DemoCluster) -> None:
    """Show that one node of three leads, that it crashes and comes back, and a planned stop."""
    stage.begin(ELECTION, "An election")
    stage.line("agent", f"an in-memory Consul agent listens on {stage.agent_url}")
    for name in NODES:
        stage.start(name)
    await stage.until("an election", lambda: stage.settled(NODES, 1))
    await stage.until("a webhook", lambda: stage.observed.get("webhook") == stage.holding)

    (crashed,) = stage.holding
    stage.chapter(f"A crash: {crashed} is killed with -9")
    await stage.kill(crashed)
    text = "is dead: its session is renewed no more, and expires after 2 x ttl (2 s)"
    stage.line(crashed, text, "1;31")
    others = _without(crashed)
    await stage.until("the expiry", lambda: stage.settled(others, 0))
    stage.line("agent", "now keeps the key free for the lock-delay (4 s): time for whatever may still run")
    await stage.until("a failover", lambda: stage.settled(others, 1))

    stage.chapter(f"{crashed} comes back, and waits")
    stage.start(crashed)
    await stage.until("its return", lambda: stage.settled(NODES, 1))

    (stopped,) = stage.holding
    stage.chapter(f"A planned stop: systemctl stop on {stopped}")
    others = _without(stopped)
    await stage.stop(stopped)
    await stage.until("a hand-over", lambda: stage.settled(others, 1))
    await _end(stage, "The end of the election")


async def _semaphore(stage: DemoCluster) -> None:
    """Show that two nodes of three have a slot, and that the third gets the slot of a node that stops."""
    stage.begin(SEMAPHORE, "A semaphore: three nodes want to rebuild, two may at once")
    for name in NODES:
        stage.start(name)
    await stage.until("two holders", lambda: stage.settled(NODES, 2))
    (waiter,) = (name for name in NODES if name not in stage.holding)
    stage.line(waiter, "waits: both slots are taken", "1;33")

    stopped = min(stage.holding)
    stage.chapter(f"{stopped} has rebuilt: systemctl stop on {stopped}")
    await stage.stop(stopped)
    await stage.until("the next holder", lambda: stage.settled(_without(stopped), 2))
    await _end(stage, "The end")


async def _end(stage: DemoCluster, title: str) -> None:
    """Stop all supervisors, the waiters first, so that no node takes over any more."""
    stage.chapter(title)
    for name in sorted(stage.running, key=lambda name: (name in stage.holding, name)):
        await stage.stop(name)
        stage.line(name, "stopped")


def _without(name: str) -> tuple[str, ...]:
    return tuple(other for other in NODES if other != name)
