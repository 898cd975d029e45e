"""The demo: an election with its failover and a semaphore, as the hooks of three supervisors report them.

Everything is real except Consul: the embedded agent allows lock-delays and TTLs that are short enough to
watch. The hooks are webhooks to this process. A chapter ends when they have reported it, and nothing here
happens after a fixed time.
"""

import asyncio
import json
import signal
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from supervisor.errors import NotPossible
from supervisor.rehearsal.devagent.agent import ADDRESS, DevAgent
from supervisor.rehearsal.drill import NODES
from supervisor.rehearsal.drill.backstage import Supervisors, temporary_folder, until
from supervisor.reporting.http_server import HttpAnswer, HttpRequest, HttpServer

EVENT_S = 60.0  # the longest wait for one event; a failover takes six seconds on an idle machine
STOP_S = 5.0  # the longest wait for a supervisor to end by itself
_HOOKS = """\
    value: "{node}"
    on_acquire:
      - {{webhook: "{hooks}/{node}"}}
    on_lose:
      - {{webhook: "{hooks}/{node}", timeout: 1s}}
    on_change:
      - {{webhook: "{hooks}/{node}"}}
"""
_ELECTION = """\
consul: {{address: "{agent}"}}
elections:
  demo:
    session: {{ttl: 1s, lock_delay: 4s}}
"""
_SEMAPHORE = """\
consul: {{address: "{agent}"}}
semaphores:
  rebuild:
    limit: 2
    session: {{ttl: 1s}}
    prune_delay: 4s
"""


@dataclass(frozen=True, slots=True)
class Act:
    """A part of the demo with one configuration, and the words for the reports of its hooks."""

    template: str
    may: str  # of a node that has acquired
    stops: str  # the work that a node ends when it loses
    gives_back: str  # the release that follows on_lose
    does: tuple[str, str]  # the verb for one holder or none, and for several


ELECTION = Act(_ELECTION + _HOOKS, "I lead", "leading", "the key is released", ("leads", "lead"))
SEMAPHORE = Act(
    _SEMAPHORE + _HOOKS, "I may rebuild", "rebuilding", "the slot is given back", ("rebuilds", "rebuild")
)


async def play(say: Callable[[str], None], *, colours: bool, environ: Mapping[str, str]) -> None:
    """Show everything, in about ten seconds. Raises NotPossible when an event does not happen."""
    task = asyncio.current_task()
    assert task is not None
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, task.cancel)  # so that everything is ended
    say("Three nodes want to lead, and one may; then they want to rebuild, and two may.")
    say("This is what their hooks are told, and when.")
    async with temporary_folder("consul-supervisor-demo-") as folder:
        demo = Demo(folder, say, colours=colours, environ=environ)
        try:
            await demo.open()
            await demo.election()
            await demo.semaphore()
        finally:
            await demo.close()
    say("")
    say("All is stopped; nothing is left behind.")


class Demo:
    """The agent, the supervisors, and the state that their hooks have reported."""

    def __init__(
        self, folder: Path, say: Callable[[str], None], *, colours: bool, environ: Mapping[str, str]
    ) -> None:
        self._folder, self._say, self._colours = folder, say, colours
        self._began_at = time.monotonic()
        self._supervisors = Supervisors(folder, environ)
        self._agent = DevAgent()
        self._receiver = HttpServer(self._report)
        self._urls: dict[str, str] = {}
        self._act = ELECTION
        self._holding: frozenset[str] = frozenset()  # by on_acquire and on_lose
        self._observed: dict[str, frozenset[str]] = {}  # the holders that on_change of each node has named

    async def open(self) -> None:
        self._urls["agent"] = f"http://{ADDRESS}:{await self._agent.server.listen(ADDRESS, 0)}"
        self._urls["hooks"] = f"http://{ADDRESS}:{await self._receiver.listen(ADDRESS, 0)}"

    async def close(self) -> None:
        self._supervisors.close()
        await self._receiver.close()
        await self._agent.close()

    async def election(self) -> None:
        self._begin(ELECTION, "An election")
        self._line("agent", f"an in-memory Consul agent listens on {self._urls['agent']}")
        self._line("demo", f"receives the hooks, which are webhooks, on {self._urls['hooks']}")
        for node in NODES:
            self._start(node)
        await self._settled("an election", NODES, 1)

        (crashed,) = self._holding
        self._chapter(f"A crash: {crashed} is killed with -9")
        self._holding = frozenset()
        self._supervisors.kill(crashed)
        text = "is dead: its session is renewed no more, and expires after 2 x ttl (2 s)"
        self._line(crashed, text, "1;31")
        await self._settled("the expiry", _without(crashed), 0)
        self._line(
            "agent", "now keeps the key free for the lock-delay (4 s): time for whatever may still run"
        )
        await self._settled("a failover", _without(crashed), 1)

        self._chapter(f"{crashed} comes back, and waits")
        self._start(crashed)
        await self._settled("its return", NODES, 1)

        (stopped,) = self._holding
        self._chapter(f"A planned stop: systemctl stop on {stopped}")
        await self._stop(stopped)
        await self._settled("a hand-over", _without(stopped), 1)
        await self._end("The end of the election")

    async def semaphore(self) -> None:
        self._begin(SEMAPHORE, "A semaphore: three nodes want to rebuild, two may at once")
        for node in NODES:
            self._start(node)
        await self._settled("two holders", NODES, 2)
        (waiter,) = frozenset(NODES) - self._holding
        self._line(waiter, "waits: both slots are taken", "1;33")

        stopped = min(self._holding)
        self._chapter(f"{stopped} has rebuilt: systemctl stop on {stopped}")
        await self._stop(stopped)
        await self._settled("the next holder", _without(stopped), 2)
        await self._end("The end")

    async def _end(self, title: str) -> None:
        """Stop all supervisors, the waiters first, so that no node takes over any more."""
        self._chapter(title)
        for node in sorted(self._supervisors.running, key=lambda node: (node in self._holding, node)):
            await self._stop(node)
            self._line(node, "stopped")

    def _begin(self, act: Act, title: str) -> None:
        """Begin an act. Supervisors that start from now on have its configuration."""
        self._act, self._holding, self._observed = act, frozenset(), {}
        self._chapter(title)

    def _chapter(self, title: str) -> None:
        """Print a title. The lines below it count their seconds from here."""
        self._say("")
        self._say(self._painted("1", title))
        self._began_at = time.monotonic()

    def _line(self, who: str, text: str, colour: str = "") -> None:
        elapsed_s = time.monotonic() - self._began_at
        self._say(f"{elapsed_s:8.3f} s  {self._painted(colour, f'{who:<8}')}  {text}")

    def _painted(self, colour: str, text: str) -> str:
        return f"\x1b[{colour}m{text}\x1b[0m" if self._colours and colour else text

    def _start(self, node: str) -> None:
        config = self._folder / f"{node}.yaml"
        config.write_text(self._act.template.format(**self._urls, node=node))
        own = str(self._folder / f"{node}.state")
        variables = {"STATE_DIRECTORY": own, "RUNTIME_DIRECTORY": own}
        self._supervisors.start(node, "supervisor", "run", str(config), **variables)
        self._line(node, "its supervisor starts")

    async def _stop(self, node: str) -> None:
        if code := await self._supervisors.stop(node, STOP_S):
            raise self._failed(f"the supervisor of {node} ended with {code}", [node])

    async def _settled(self, event: str, nodes: Iterable[str], count: int) -> None:
        """Wait until ``count`` of these nodes hold, no other node holds, and each of them observed it."""
        names = frozenset(nodes)

        def is_settled() -> bool:
            observed = all(self._observed.get(name) == self._holding for name in names)
            return observed and len(self._holding) == count and self._holding <= names

        if not await until(is_settled, EVENT_S):
            why = f"{event} did not happen within {EVENT_S:g} s"
            raise self._failed(why, self._supervisors.running)

    def _failed(self, why: str, nodes: Iterable[str]) -> NotPossible:
        logs = [f"  {node}: {line}" for node in nodes for line in self._supervisors.log(node)[-5:]]
        return NotPossible("\n".join([f"cannot finish the demo: {why}:", *logs]))

    async def _report(self, request: HttpRequest) -> HttpAnswer:
        """Print what a hook is told."""
        act, node, told = self._act, request.target.removeprefix("/"), json.loads(request.body)
        if told["event"] == "acquire":
            self._holding |= {node}
            self._line(node, f"on_acquire  {act.may}, fencing token {told['fencing_token']}", "1;32")
        elif told["event"] == "lose":
            self._holding -= {node}
            text = f"on_lose     I stop {act.stops} ({told['reason']}); only then {act.gives_back}"
            self._line(node, text, "1;33")
        else:
            holders = told.get("holders")  # of a semaphore; an election has its leader
            values = [told["leader"]] if holders is None else [each["value"]["Value"] for each in holders]
            names = self._observed[node] = frozenset(filter(None, values))
            who = " and ".join(sorted(names)) or "nobody"
            self._line(node, f"on_change   {who} {act.does[len(names) > 1]}", "36")
        return HttpAnswer(204)


def _without(node: str) -> tuple[str, ...]:
    return tuple(other for other in NODES if other != node)
