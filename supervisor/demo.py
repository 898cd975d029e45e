"""A rehearsal anyone can watch: three supervisors, an election, a failover, a hand-over.

Everything is real but the Consul: the embedded agent serves in this process, because it allows
lock-delays and TTLs short enough to watch. The supervisors are processes of their own, their hooks
are commands that write to a FIFO, one of them a webhook that arrives here. Whatever is started is
ended, whatever is written lies in one temporary folder. It tells what it sees and decides nothing
for the supervisors.
"""

import asyncio
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from supervisor.devagent.agent import DevAgent
from supervisor.http_server import HttpAnswer, HttpRequest, HttpServer

HOST = "127.0.0.1"
NODES = ("node-a", "node-b", "node-c")
PATIENCE_S = 20.0  # for any one thing to happen; the longest, a failover, takes six seconds
STOP_S = 5.0  # for a supervisor to end in order
LINE_BYTES_MAX = 4096  # a hook's line; it is one write, which a FIFO keeps in one piece

# Short, so that a failover can be watched: 2 x ttl + lock_delay = 6 s. Real ones are longer.
_CONFIG = """\
consul: {{address: "{agent}"}}
elections:
  demo:
    value: "{node}"
    session: {{ttl: 1s, lock_delay: 4s}}
    on_acquire:
      - {{shell: '{tell}', kill_after: 100ms}}
    on_lose:
      - {{shell: '{tell}', timeout: 500ms, kill_after: 100ms}}
    on_change:
      - {{shell: '{tell}'}}
      - {{webhook: "{webhook}"}}
"""
_TELL = (
    'echo "{node}|$CONSUL_SUPERVISOR_EVENT|$CONSUL_SUPERVISOR_REASON|$CONSUL_SUPERVISOR_FENCING_TOKEN'
    '|$CONSUL_SUPERVISOR_LEADER" >{fifo}'
)


class DemoFailed(Exception):
    """Something that the demo waits for did not happen; the text says what."""


class Story:
    """Lines with their times, coloured on a terminal."""

    def __init__(self, say: Callable[[str], None], *, colours: bool) -> None:
        self._say = say
        self._colours = colours
        self._began = time.monotonic()

    def chapter(self, title: str) -> None:
        """A new part of the story; its lines count their seconds from here."""
        self._say("")
        self._say(self._paint("1", title))
        self._began = time.monotonic()

    def line(self, who: str, text: str, colour: str = "") -> None:
        """What happened just now."""
        elapsed_s = time.monotonic() - self._began
        self._say(f"{elapsed_s:8.3f} s  {self._paint(colour, f'{who:<8}')}  {text}")

    def _paint(self, colour: str, text: str) -> str:
        return f"\x1b[{colour}m{text}\x1b[0m" if self._colours and colour else text


class Demo:
    """The cast: the agent, the receiver of webhooks, and the supervisors by node name."""

    def __init__(self, folder: Path, story: Story, environ: Mapping[str, str]) -> None:
        self.story = story
        self._folder = folder
        # The same package in the children, whether it is installed or run from a checkout.
        self._environ = {**environ, "PYTHONPATH": str(Path(__file__).parent.parent)}
        self._agent = DevAgent()
        self._receiver = HttpServer(self._webhook)
        self._webhook_url = ""
        self._agent_url = ""
        self._fifo = -1
        self._supervisors: dict[str, subprocess.Popen[bytes]] = {}
        self._news = asyncio.Event()
        self.leader = ""
        self.heard: dict[str, str] = {}
        self.webhooks = 0

    async def open(self) -> None:
        """Start the agent and whatever hooks will talk to."""
        port = await self._agent.server.listen(HOST, 0)
        self._agent_url = f"http://{HOST}:{port}"
        self._webhook_url = f"http://{HOST}:{await self._receiver.listen(HOST, 0)}/leader"
        path = self._folder / "hooks"
        os.mkfifo(path, 0o600)
        self._fifo = os.open(path, os.O_RDWR | os.O_NONBLOCK)
        asyncio.get_running_loop().add_reader(self._fifo, self._hook_told)
        self.story.line("agent", f"an in-memory Consul agent listens on {self._agent_url}")

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

    def start(self, name: str) -> None:
        """Start the supervisor of a node."""
        config = self._folder / f"{name}.yaml"
        tell = _TELL.format(node=name, fifo=self._folder / "hooks")
        config.write_text(
            _CONFIG.format(agent=self._agent_url, node=name, tell=tell, webhook=self._webhook_url)
        )
        own = str(self._folder / f"{name}.state")
        setpriv = shutil.which("setpriv")
        prefix = [setpriv, "--pdeathsig", "KILL", "--"] if setpriv else []
        with (self._folder / f"{name}.log").open("wb") as log:
            self._supervisors[name] = subprocess.Popen(
                [*prefix, sys.executable, "-P", "-m", "supervisor", "run", str(config)],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env={**self._environ, "STATE_DIRECTORY": own, "RUNTIME_DIRECTORY": own},
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
        self.leader = self.heard[name] = ""
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

    def _hook_told(self) -> None:
        for line in os.read(self._fifo, 16 * LINE_BYTES_MAX).decode().splitlines():
            name, event, reason, token, leader = line.split("|")
            self._told(name, event, reason, token, leader)
        self._news.set()

    def _told(self, name: str, event: str, reason: str, token: str, leader: str) -> None:
        if event == "acquire":
            self.leader = name
            self.story.line(name, f"on_acquire  I lead, fencing token {token}", "1;32")
        elif event == "lose":
            self.leader = "" if self.leader == name else self.leader
            self.story.line(
                name, f"on_lose     I stop leading ({reason}); only then the key is released", "1;33"
            )
        else:
            self.heard[name] = leader
            self.story.line(name, f"on_change   {f'{leader} leads' if leader else 'nobody leads'}", "36")

    async def _webhook(self, request: HttpRequest) -> HttpAnswer:
        told = json.loads(request.body)
        self.webhooks += 1
        if told["leader"] and told["leader"] not in self.heard.get("webhook", ""):
            self.heard["webhook"] = told["leader"]
            text = f"POST {request.target}: {told['reason']}, leader {told['leader']}"
            self.story.line("webhook", text, "35")
        self._news.set()
        return HttpAnswer(204)

    def _log(self, name: str) -> str:
        lines = (self._folder / f"{name}.log").read_text(errors="replace").splitlines()
        return "\n".join(f"  {name}: {line}" for line in lines[-5:])


async def demo(say: Callable[[str], None], *, colours: bool, environ: Mapping[str, str]) -> None:
    """Tell the whole story, in less than half a minute. Raises DemoFailed."""
    task = asyncio.current_task()
    assert task is not None
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, task.cancel)  # so that all is ended
    say("Three nodes want to lead; one may. This is what their hooks are told, and when.")
    with tempfile.TemporaryDirectory(prefix="consul-supervisor-demo-") as folder:
        cast = Demo(Path(folder), Story(say, colours=colours), environ)
        try:
            await _play(cast)
        finally:
            await cast.close()
    say("")
    say("All is stopped; nothing is left behind.")


async def _play(cast: Demo) -> None:
    story = cast.story
    story.chapter("An election")
    await cast.open()
    for name in NODES:
        cast.start(name)
    await cast.until("an election", lambda: bool(cast.leader) and _all_know(cast, NODES))
    await cast.until("a webhook", lambda: cast.heard.get("webhook") == cast.leader)

    crashed = cast.leader
    story.chapter(f"A crash: {crashed} is killed with -9")
    await cast.kill(crashed)
    story.line(crashed, "is dead: its session is renewed no more, and expires after 2 x ttl (2 s)", "1;31")
    others = tuple(name for name in NODES if name != crashed)
    await cast.until("the expiry", lambda: all(cast.heard[name] == "" for name in others))
    story.line("agent", "now keeps the key free for the lock-delay (4 s): time for whatever may still run")
    await cast.until("a failover", lambda: cast.leader in others and _all_know(cast, others))

    story.chapter(f"{crashed} comes back, and waits")
    cast.start(crashed)
    await cast.until("its return", lambda: cast.heard.get(crashed) == cast.leader)

    stopped = cast.leader
    story.chapter(f"A planned stop: systemctl stop on {stopped}")
    others = tuple(name for name in NODES if name != stopped)
    await cast.stop(stopped)
    await cast.until("a hand-over", lambda: cast.leader in others and _all_know(cast, others))
    story.chapter("The end")
    for name in (*(name for name in others if name != cast.leader), cast.leader):
        await cast.stop(name)
        story.line(name, "stopped")


def _all_know(cast: Demo, names: tuple[str, ...]) -> bool:
    return all(cast.heard.get(name) == cast.leader for name in names)
