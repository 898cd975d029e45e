"""The cast: the agent, the receiver of webhooks, the supervisors, and what is heard of their hooks.

Whatever is started here is ended by ``close``, at the latest; supervisors end with this process, too,
however that ends. It must never decide anything for the supervisors, nor tell what it has not heard.
"""

import asyncio
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from supervisor.demo.acts import LINE_BYTES_MAX, Act, Told, told
from supervisor.demo.story import Story
from supervisor.devagent.agent import DevAgent
from supervisor.errors import NotPossible
from supervisor.http_server import HttpAnswer, HttpRequest, HttpServer

HOST = "127.0.0.1"
PATIENCE_S = 60.0  # for any one thing to happen; a failover takes six seconds on an idle machine
STOP_S = 5.0  # for a supervisor to end in order
PACKAGE_PARENT = Path(__file__).parents[2]


class DemoFailed(NotPossible):
    """Something that the demo waits for did not happen; the text says what."""

    def __init__(self, why: str) -> None:
        super().__init__(f"cannot finish the demo: {why}")


class Cast:
    """``holding``: who leads or has a slot, by its own hooks; ``heard``: of whom each was told that."""

    def __init__(self, folder: Path, story: Story, environ: Mapping[str, str]) -> None:
        self.story = story
        self._folder = folder
        # The same package in the children, whether it is installed or run from a checkout.
        self._environ = {**environ, "PYTHONPATH": str(PACKAGE_PARENT)}
        self._agent = DevAgent()
        self._receiver = HttpServer(self._webhook)
        self._webhook_url = ""
        self.agent_url = ""
        self._fifo = -1
        self._supervisors: dict[str, subprocess.Popen[bytes]] = {}
        self._news = asyncio.Event()
        self._act: Act | None = None
        self.holding: frozenset[str] = frozenset()
        self.heard: dict[str, frozenset[str]] = {}

    async def open(self) -> None:
        """Start the agent and whatever hooks will talk to."""
        port = await self._agent.server.listen(HOST, 0)
        self.agent_url = f"http://{HOST}:{port}"
        self._webhook_url = f"http://{HOST}:{await self._receiver.listen(HOST, 0)}/leader"
        path = self._folder / "hooks"
        os.mkfifo(path, 0o600)
        self._fifo = os.open(path, os.O_RDWR | os.O_NONBLOCK)
        asyncio.get_running_loop().add_reader(self._fifo, self._hooks_told)

    async def close(self) -> None:
        """End all that was started, by force where it must be."""
        for name in tuple(self._supervisors):
            self._supervisors[name].kill()
            await self._ended(name)
        if self._fifo >= 0:
            asyncio.get_running_loop().remove_reader(self._fifo)
            os.close(self._fifo)
        await self._receiver.close()
        await self._agent.close()

    def begin(self, act: Act, title: str) -> None:
        """A new act: whoever is started from now on has its file."""
        self._act = act
        self.holding, self.heard = frozenset(), {}
        self.story.chapter(title)

    @property
    def running(self) -> tuple[str, ...]:
        """The nodes whose supervisors were started and not ended."""
        return tuple(self._supervisors)

    def settled(self, names: Iterable[str], count: int) -> bool:
        """Whether so many of these hold, nobody else does, and all of these were told so."""
        nodes = frozenset(names)
        known = all(self.heard.get(name) == self.holding for name in nodes)
        return known and len(self.holding) == count and self.holding <= nodes

    def start(self, name: str) -> None:
        """Start the supervisor of a node."""
        assert self._act is not None, "begun"
        config = self._folder / f"{name}.yaml"
        config.write_text(self._act.file(name, agent=self.agent_url, webhook=self._webhook_url))
        own, fifo = str(self._folder / f"{name}.state"), str(self._folder / "hooks")
        setpriv = shutil.which("setpriv")
        prefix = [setpriv, "--pdeathsig", "KILL", "--"] if setpriv else []
        with (self._folder / f"{name}.log").open("wb") as log:
            self._supervisors[name] = subprocess.Popen(
                [*prefix, sys.executable, "-P", "-m", "supervisor", "run", str(config)],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env={**self._environ, "STATE_DIRECTORY": own, "RUNTIME_DIRECTORY": own, "DEMO_FIFO": fifo},
            )
        self.story.line(name, "its supervisor starts")

    async def stop(self, name: str) -> None:
        """Stop a node's supervisor as systemd does, and wait for its end."""
        self._supervisors[name].send_signal(signal.SIGTERM)
        code = await self._ended(name)
        if code:
            raise DemoFailed(f"the supervisor of {name} ended with {code}:\n{self._log(name)}")

    async def kill(self, name: str) -> None:
        """End a node's supervisor as a crash does: nothing of it runs any more."""
        self.holding -= {name}
        self._supervisors[name].kill()
        await self._ended(name)

    async def until(self, what: str, happened: Callable[[], bool]) -> None:
        """Wait for it. Raises DemoFailed when it does not happen."""
        try:
            async with asyncio.timeout(PATIENCE_S):
                while not happened():
                    self._news.clear()
                    await self._news.wait()
        except TimeoutError:
            logs = "\n".join(self._log(name) for name in self._supervisors)
            raise DemoFailed(f"{what} did not happen within {PATIENCE_S:g} s:\n{logs}") from None

    async def _ended(self, name: str) -> int:
        child = self._supervisors.pop(name)
        deadline = time.monotonic() + STOP_S
        while (code := child.poll()) is None:
            if time.monotonic() > deadline:
                child.kill()
            await asyncio.sleep(0.005)
        return code

    def _hooks_told(self) -> None:
        for line in os.read(self._fifo, 16 * LINE_BYTES_MAX).decode().splitlines():
            self._told(told(line))
        self._news.set()

    def _told(self, told: Told) -> None:
        act, name = self._act, told.node
        assert act is not None, "begun"
        if told.event == "acquire":
            self.holding |= {name}
            self.story.line(name, f"on_acquire  {act.may}, fencing token {told.token}", "1;32")
        elif told.event == "lose":
            self.holding -= {name}
            text = f"on_lose     I stop {act.stops} ({told.reason}); only then {act.gives_back}"
            self.story.line(name, text, "1;33")
        else:
            self.heard[name] = told.holders
            self.story.line(name, f"on_change   {act.told_of(told.holders)}", "36")

    async def _webhook(self, request: HttpRequest) -> HttpAnswer:
        event = json.loads(request.body)
        leader = event["leader"]
        named = frozenset({leader} - {None})
        if named and self.heard.get("webhook") != named:
            self.heard["webhook"] = named
            self.story.line("webhook", f"POST {request.target}: {event['reason']}, leader {leader}", "35")
        self._news.set()
        return HttpAnswer(204)

    def _log(self, name: str) -> str:
        lines = (self._folder / f"{name}.log").read_text(errors="replace").splitlines()
        return "\n".join(f"  {name}: {line}" for line in lines[-5:])
