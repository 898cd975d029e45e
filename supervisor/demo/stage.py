"""The agent, the supervisors, and the reports of their hooks, each printed as one line.

``close`` ends every process that was started. A supervisor also ends with this process, however this process
ends. The stage must never print anything that no hook has reported.
"""

import asyncio
import json
import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from supervisor.demo.backstage import ended, start_child
from supervisor.devagent.agent import DevAgent
from supervisor.errors import NotPossible
from supervisor.http_server import HttpAnswer, HttpRequest, HttpServer

HOST = "127.0.0.1"
EVENT_S = 60.0  # the longest wait for one event; a failover takes six seconds on an idle machine
STOP_S = 5.0  # the longest wait for a supervisor to end by itself
REPORT_BYTES_MAX = 4096  # one write, which a FIFO keeps in one piece
# One line for each event of a hook; DemoCluster._report reads the fields in this order.
REPORT = (
    'echo "{node}|$CONSUL_SUPERVISOR_EVENT|$CONSUL_SUPERVISOR_REASON|$CONSUL_SUPERVISOR_FENCING_TOKEN'
    '|$CONSUL_SUPERVISOR_LEADER|$CONSUL_SUPERVISOR_HOLDERS" >"$DEMO_FIFO"'
)


class DemoFailed(NotPossible):
    """An event for which the demo waits did not happen. The text says which."""

    def __init__(self, why: str) -> None:
        super().__init__(f"cannot finish the demo: {why}")


@dataclass(frozen=True, slots=True)
class Act:
    """A part of the demo with one configuration, and the words for the reports of its hooks.

    template: the configuration of a node, with ``{agent}``, ``{webhook}``, ``{node}`` and ``{report}``.
    may: the words of a node that has acquired.
    stops: the work that a node ends when it loses.
    gives_back: the release that follows on_lose.
    does: the verb for one holder or none, and the verb for several.
    """

    template: str
    may: str
    stops: str
    gives_back: str
    does: tuple[str, str]


class DemoCluster:
    """The agent, the supervisors, and the state that the hooks have reported.

    holding: the nodes that hold, by on_acquire and on_lose.
    observed: the holders that on_change of each node has named, and the webhook under ``webhook``.
    """

    def __init__(
        self, folder: Path, say: Callable[[str], None], *, colours: bool, environ: Mapping[str, str]
    ) -> None:
        self._folder = folder
        self._say = say
        self._colours = colours
        self._began_at = time.monotonic()
        self._environ = environ
        self._agent = DevAgent()
        self._receiver = HttpServer(self._webhook)
        self._webhook_url = ""
        self.agent_url = ""
        self._fifo = -1
        self._supervisors: dict[str, subprocess.Popen[bytes]] = {}
        self._changed = asyncio.Event()
        self._act: Act | None = None
        self.holding: frozenset[str] = frozenset()
        self.observed: dict[str, frozenset[str]] = {}

    async def open(self) -> None:
        """Start the agent, the receiver of webhooks, and the FIFO of the hooks."""
        self.agent_url = f"http://{HOST}:{await self._agent.server.listen(HOST, 0)}"
        self._webhook_url = f"http://{HOST}:{await self._receiver.listen(HOST, 0)}/leader"
        path = self._folder / "hooks"
        os.mkfifo(path, 0o600)
        self._fifo = os.open(path, os.O_RDWR | os.O_NONBLOCK)
        asyncio.get_running_loop().add_reader(self._fifo, self._read_reports)

    async def close(self) -> None:
        """End everything that was started, by force if needed."""
        for name in self.running:
            self._supervisors[name].kill()
            await self._ended(name)
        if self._fifo >= 0:
            asyncio.get_running_loop().remove_reader(self._fifo)
            os.close(self._fifo)
        await self._receiver.close()
        await self._agent.close()

    # --- lines -----------------------------------------------------------------------------------

    def chapter(self, title: str) -> None:
        """Print a title. The lines below it count their seconds from here."""
        self._say("")
        self._say(self._painted("1", title))
        self._began_at = time.monotonic()

    def line(self, who: str, text: str, colour: str = "") -> None:
        """Print one line about a node, the agent or the webhook."""
        elapsed_s = time.monotonic() - self._began_at
        self._say(f"{elapsed_s:8.3f} s  {self._painted(colour, f'{who:<8}')}  {text}")

    def _painted(self, colour: str, text: str) -> str:
        return f"\x1b[{colour}m{text}\x1b[0m" if self._colours and colour else text

    # --- supervisors -----------------------------------------------------------------------------

    def begin(self, act: Act, title: str) -> None:
        """Begin an act. Supervisors that start from now on have its configuration."""
        self._act = act
        self.holding, self.observed = frozenset(), {}
        self.chapter(title)

    @property
    def running(self) -> tuple[str, ...]:
        """The nodes whose supervisors run."""
        return tuple(self._supervisors)

    def start(self, name: str) -> None:
        """Start the supervisor of a node."""
        assert self._act is not None, "begun"
        config = self._folder / f"{name}.yaml"
        names = {"agent": self.agent_url, "webhook": self._webhook_url, "node": name}
        config.write_text(self._act.template.format(**names, report=REPORT.format(node=name)))
        own, fifo = str(self._folder / f"{name}.state"), str(self._folder / "hooks")
        environ = {**self._environ, "STATE_DIRECTORY": own, "RUNTIME_DIRECTORY": own, "DEMO_FIFO": fifo}
        log = self._folder / f"{name}.log"
        self._supervisors[name] = start_child("supervisor", ["run", str(config)], log, environ)
        self.line(name, "its supervisor starts")

    async def stop(self, name: str) -> None:
        """Stop a supervisor as systemd does, and wait for its end. Raises DemoFailed if it ends badly."""
        self._supervisors[name].send_signal(signal.SIGTERM)
        if code := await self._ended(name):
            raise DemoFailed(f"the supervisor of {name} ended with {code}:\n{self._log(name)}")

    async def kill(self, name: str) -> None:
        """End a supervisor as a crash does, without on_lose."""
        self.holding -= {name}
        self._supervisors[name].kill()
        await self._ended(name)

    async def _ended(self, name: str) -> int:
        return await ended(self._supervisors.pop(name), STOP_S)

    # --- reports ---------------------------------------------------------------------------------

    async def until(self, event: str, happened: Callable[[], bool]) -> None:
        """Wait until ``happened``. Raises DemoFailed if the event does not happen within EVENT_S."""
        try:
            async with asyncio.timeout(EVENT_S):
                while not happened():
                    self._changed.clear()
                    await self._changed.wait()
        except TimeoutError:
            logs = "\n".join(map(self._log, self.running))
            raise DemoFailed(f"{event} did not happen within {EVENT_S:g} s:\n{logs}") from None

    def settled(self, names: Iterable[str], count: int) -> bool:
        """Return whether ``count`` of these nodes hold, no other node holds, and each of them observed it."""
        nodes = frozenset(names)
        observed = all(self.observed.get(name) == self.holding for name in nodes)
        return observed and len(self.holding) == count and self.holding <= nodes

    def _read_reports(self) -> None:
        for line in os.read(self._fifo, 16 * REPORT_BYTES_MAX).decode().splitlines():
            self._report(*line.split("|", 5))
        self._changed.set()

    def _report(self, node: str, event: str, reason: str, token: str, leader: str, holders: str) -> None:
        """Print the report of a hook. ``leader``: of an election; ``holders``: of a semaphore, as JSON."""
        act = self._act
        assert act is not None, "begun"
        if event == "acquire":
            self.holding |= {node}
            self.line(node, f"on_acquire  {act.may}, fencing token {token}", "1;32")
        elif event == "lose":
            self.holding -= {node}
            text = f"on_lose     I stop {act.stops} ({reason}); only then {act.gives_back}"
            self.line(node, text, "1;33")
        else:
            values = (each["value"]["Value"] for each in json.loads(holders)) if holders else (leader,)
            names = self.observed[node] = frozenset(values) - {""}
            who = " and ".join(sorted(names)) or "nobody"
            self.line(node, f"on_change   {who} {act.does[len(names) > 1]}", "36")

    async def _webhook(self, request: HttpRequest) -> HttpAnswer:
        event = json.loads(request.body)
        leader = event["leader"]
        named = frozenset({leader} - {None})
        if named and self.observed.get("webhook") != named:
            self.observed["webhook"] = named
            self.line("webhook", f"POST {request.target}: {event['reason']}, leader {leader}", "35")
        self._changed.set()
        return HttpAnswer(204)

    def _log(self, name: str) -> str:
        lines = (self._folder / f"{name}.log").read_text(errors="replace").splitlines()
        return "\n".join(f"  {name}: {line}" for line in lines[-5:])
