"""examples/rolling-restart: at most ``limit`` services restart at once, and one that fails stops the roll.

The services are processes that answer over HTTP. A fake ``systemctl`` ends and starts them.
"""

import os
import subprocess
import sys
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.support.consul import HOST, free_ports
from tests.support.supervisor import until
from tests.support.tenures import most_between
from tests.system.applications.stage import EXAMPLES, Stage, end_all

FOLDER = EXAMPLES / "rolling-restart"
NAMES = ("a", "b", "c", "d", "e")
PREFIX = "service/app-restart/"
QUICK = {"interval: 5s": "interval: 1s"}
# As with systemd, the process is no child of the caller, and `start` does nothing to a running service.
SYSTEMCTL = """\
#!/bin/sh
set -eu
runs() { [ -e "$RUN/app.pid" ] && kill -0 "$(cat "$RUN/app.pid")" 2>/dev/null; }
[ "$2" = app ]
case $1 in
restart)
    echo "down $NODE" >>"$JOURNAL"
    if runs; then
        kill "$(cat "$RUN/app.pid")"
        while runs; do sleep 0.02; done
    fi
    exec "$0" start app ;;
start) runs || setsid "$RUN/app" >/dev/null 2>&1 & ;;
*) exit 2 ;;
esac
"""
# The service reports its pid, and that it is up once it can be reached; it starts only when it may.
APP = f"""\
#!{sys.executable}
import http.server, os, time

class Answers(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b"%d" % os.getpid())

run = os.environ["RUN"]
while not os.path.exists(f"{{run}}/may-start"):
    time.sleep(0.02)
server = http.server.HTTPServer(("{HOST}", int(os.environ["PORT"])), Answers)
with open(f"{{run}}/app.pid", "w") as file:
    file.write(str(os.getpid()))
with open(os.environ["JOURNAL"], "a") as file:
    file.write(f"up {{os.environ['NODE']}}\\n")
server.serve_forever()
"""
BROKEN = "#!/bin/sh\nexit 1\n"


class AppNode:
    """A machine with the service, and a supervisor that restarts the service on request."""

    def __init__(self, stage: Stage, name: str, replaced: Mapping[str, str]) -> None:
        self._folder = stage.folder / name
        self._run = self._folder / "run"
        self._run.mkdir(parents=True)
        programs = self._folder / "bin"
        self.port = free_ports(1)[0]
        self._environ = {
            "NODE": name,
            "JOURNAL": str(stage.folder / "journal"),
            "RUN": str(self._run),
            "PORT": str(self.port),
            "PATH": f"{programs}:{os.environ['PATH']}",
            "APP_HEALTH_URL": f"http://{HOST}:{self.port}/",
        }
        self._systemctl = programs / "systemctl"
        _write(self._systemctl, SYSTEMCTL)
        self.install(APP)
        places = {"/usr/bin/systemctl": str(self._systemctl), "/run/": f"{self._run}/"}
        example = FOLDER / "rolling-restart.yaml"
        self.supervisor = stage.supervisor(name, example, self._environ, {**places, **QUICK, **replaced})

    def install(self, app: str) -> None:
        """Install this program as the service, from its next start on."""
        _write(self._run / "app", app)

    def systemctl_start(self) -> None:
        """Start the service as an operator does."""
        subprocess.run([str(self._systemctl), "start", "app"], check=True, env=self._environ)

    def may_start(self, *, yes: bool) -> None:
        """Let a service that is started come up at once, or let it hang."""
        gate = self._run / "may-start"
        gate.touch() if yes else gate.unlink()

    def ask(self) -> None:
        """Request a restart in the way that the README shows."""
        (self._run / "app-restart").touch()

    @property
    def asked(self) -> bool:
        """Whether the requested restart is still to come."""
        return (self._run / "app-restart").exists()

    def answer(self) -> str:
        """Return the process id that clients get from the service; blank when it does not answer."""
        try:
            with urllib.request.urlopen(f"http://{HOST}:{self.port}/", timeout=10) as answer:
                return str(answer.read().decode())
        except OSError:
            return ""

    def failed_checks(self) -> int:
        """Return how often app-is-healthy has failed."""
        return len([1 for line in self.supervisor.lines("hook-output") if "curl" in str(line)])

    def end(self) -> None:
        """End everything on the node."""
        self.supervisor.close()
        end_all(self._folder)


def _write(path: Path, program: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.unlink(missing_ok=True)  # a running program's file cannot be written
    path.write_text(program)
    path.chmod(0o755)


class Services:
    """The five nodes with running services, and the order in which services have gone down and come up."""

    def __init__(self, stage: Stage, nodes: dict[str, AppNode]) -> None:
        self._stage = stage
        self.nodes = nodes
        self._before = 0  # the lines of the first starts, which do not count
        for node in nodes.values():
            node.may_start(yes=True)
            node.systemctl_start()
        self.first = {name: until(node.answer, f"{name} answers") for name, node in nodes.items()}
        self._before = len(self.journal())
        for node in nodes.values():
            node.supervisor.start()

    def journal(self) -> list[tuple[str, str]]:
        """Return (down or up, node), oldest first."""
        text = (self._stage.folder / "journal").read_text()
        told = [tuple(line.split()) for line in text.splitlines(keepends=True) if line.endswith("\n")]
        return [(what, node) for what, node in told][self._before :]

    def down(self) -> list[str]:
        """Return the nodes whose services have gone down, oldest first."""
        return [node for what, node in self.journal() if what == "down"]

    def most_down_at_once(self) -> int:
        return most_between(self.journal(), "down", "up")

    def in_line(self) -> int:
        """Return how many contenders have a slot or wait for one."""
        return len([1 for entry in self._stage.agent.kv_list(PREFIX) if entry["Session"]])

    def answering(self) -> dict[str, str]:
        return {name: answer for name, node in self.nodes.items() if (answer := node.answer())}


@pytest.fixture
def make(stage: Stage) -> Iterator[Callable[[Mapping[str, str]], Services]]:
    """Yield a maker of five nodes with these changes of the example."""
    with ExitStack() as stack:

        def made(replaced: Mapping[str, str]) -> Services:
            stage.folder.mkdir(parents=True, exist_ok=True)
            nodes = {name: AppNode(stage, name, replaced) for name in NAMES}
            for node in nodes.values():
                stack.callback(node.end)
            return Services(stage, nodes)

        yield made


def test_five_services_restart_two_at_once_and_each_once(
    make: Callable[[Mapping[str, str]], Services],
) -> None:
    """With ``limit: 2`` no third service restarts, even when the first two take their time."""
    services = make({"limit: 1 ": "limit: 2 "})
    for node in services.nodes.values():
        node.may_start(yes=False)
        node.ask()
    until(lambda: services.in_line() == 5 and len(services.down()) == 2, "two restart and three wait")
    two = services.down()
    until(lambda: all(services.nodes[name].failed_checks() >= 3 for name in two), "they take their time")
    waiting = {name: services.first[name] for name in NAMES if name not in two}
    assert services.down() == two and services.answering() == waiting
    for node in services.nodes.values():
        node.may_start(yes=True)
    until(lambda: not any(node.asked for node in services.nodes.values()), "all have restarted")
    assert sorted(services.down()) == [*NAMES]
    assert services.most_down_at_once() == 2
    now = services.answering()
    assert set(now) == set(NAMES) and all(now[name] != services.first[name] for name in NAMES)
    until(lambda: services.in_line() == 0, "nobody is in line any more")


def test_the_roll_stops_at_the_node_that_does_not_come_back(
    make: Callable[[Mapping[str, str]], Services],
) -> None:
    """A bad version on all nodes takes down one of them. When that node works again, the roll goes on."""
    services = make({})
    for node in services.nodes.values():
        node.install(BROKEN)
        node.ask()
    until(lambda: services.in_line() == 5 and services.down(), "one restarts and four wait")
    (first,) = services.down()
    until(lambda: services.nodes[first].failed_checks() >= 3, "it does not come back")
    assert services.down() == [first]
    others = {name: services.first[name] for name in NAMES if name != first}
    assert services.answering() == others
    services.nodes[first].install(APP)
    services.nodes[first].systemctl_start()
    until(lambda: len(services.down()) == 2, "the next one has its turn")
    assert not services.nodes[first].asked and services.nodes[first].answer() != services.first[first]
    for node in services.nodes.values():
        node.install(APP)
    services.nodes[services.down()[1]].systemctl_start()
    until(lambda: not any(node.asked for node in services.nodes.values()), "all have restarted")
    assert sorted(services.down()) == [*NAMES] and services.most_down_at_once() == 1
    assert set(services.answering()) == set(NAMES)
