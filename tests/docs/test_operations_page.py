"""docs/operations.md is true: supervisors run its commands, and the code has its quotations."""

import ast
import getpass
import json
import re
import socket
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml

from supervisor.core.actions import Reason, Role
from tests.support.candidates import candidate_elsewhere
from tests.support.consul import Agent
from tests.support.pages import OPERATIONS, ROOT, Shown, code_of, first_codes, rows
from tests.support.shell import Shell
from tests.support.supervisor import Supervisor, until

SHOWN = Shown(OPERATIONS)
LOGS = ROOT / "docs" / "logs.md"
UNIT = ROOT / "systemd" / "consul-supervisor.service"
CONFIG, TOKEN = "/etc/consul-supervisor", "/etc/consul-supervisor/token"
SOON_S = 30.0  # half of the rest after a step-down, so that the end of the rest is no success
HOOK = {"exec": ["true"], "timeout": "2s"}
# Words of a cell that belong to the system, to systemd or to another program.
OF_OTHERS = (
    "Operation not permitted",
    "Read-only file system",
    "Watchdog timeout",
    "no such file",
    "permission denied",
    "consul watch",
    "-",
)


def test_every_block_of_the_operations_page_has_a_test() -> None:
    assert SHOWN.untested() == []


# --- commands of the page --------------------------------------------------------------------------


class Nodes:
    """Two nodes of one election and one semaphore; the shell is the first one's."""

    def __init__(self, folder: Path, agent: Agent, unique: str) -> None:
        self.prefix = f"{unique}/rebuild"
        self._consul = {"address": agent.url, "token_file": str(folder / "token")}
        self._key = f"{unique}/leader"
        (folder / "token").write_text("")
        self.nodes = [Supervisor(folder / name, self.config(name)) for name in ("node1", "node2")]
        self.first = self.nodes[0]
        self._where = {f"{CONFIG}/": f"{folder}/", CONFIG: str(self.first.config_path)}
        self.shell = self._new_shell(self.first, folder)

    @staticmethod
    def _new_shell(node: Supervisor, folder: Path) -> Shell:
        shell = Shell(folder, folder, {"PYTHONPATH": str(ROOT), "PYTHONWARNINGS": "error"})
        place = f"--config {node.config_path}", f"--socket {node.folder}/control.sock"
        asks_consul = "history*|leader*|limit*|members*|sessions*|'status --cluster'"
        both = f"drain*|pause*|resume*|step-down*) echo {' '.join(place)} ;;"
        cases = f"check*) ;; {both} {asks_consul}) echo {place[0]} ;; *) echo {place[1]} ;;"
        chosen = f'$(case "$1 $2" in {cases} esac)'
        shell.provide("consul-supervisor", f'"{sys.executable}" -m supervisor "$@" {chosen}')
        return shell

    @contextmanager
    def shell_of(self, node: Supervisor) -> Iterator[Shell]:
        """Open a shell on this node for the length of the block."""
        with closing(self._new_shell(node, node.folder)) as shell:
            yield shell

    def config(self, node: str, **changes: Any) -> dict[str, Any]:
        """Return a node's file; ``changes`` are of the election."""
        (Path(self._consul["token_file"])).write_text("anonymous\n")
        session = {"ttl": "10s", "lock_delay": "20s"}
        election = {"key": self._key, "value": node, "session": session, "on_acquire": [HOOK], **changes}
        semaphore = {"prefix": self.prefix, "limit": 2, "prune_delay": "20s", "session": session}
        return {
            "consul": self._consul,
            "fleet": {
                "prefix": f"{self._key}-fleet",
                "service": re.sub("[^a-z0-9]", "-", self._key)[-40:].strip("-"),
            },
            "log": {"format": "json"},
            "elections": {"app": election},
            "semaphores": {"rebuild": {**semaphore, "on_acquire": [HOOK]}},
        }

    def start(self) -> None:
        """Start both nodes: the first leads, and both have slots."""
        for node in self.nodes:
            node.start()
            node.wait_line("role", item="rebuild", role="holding")
            self.first.wait_line("role", item="app", role="holding")

    def here(self, text: str) -> str:
        for shown, meant in self._where.items():
            text = text.replace(shown, meant)
        return text

    def run_all(self, lines: list[str]) -> str:
        return self.shell.run_all(map(self.here, lines))

    def wait_candidate(self) -> None:
        """Return when the node that does not lead has a session."""
        asked = "consul-supervisor members app"
        until(lambda: " 1 candidate" in self.shell.ended(asked)[1], "the other is a candidate")

    def close(self) -> None:
        self.shell.close()
        for node in self.nodes:
            node.close()


@pytest.fixture
def nodes(tmp_path: Path, shared_agent: Agent, unique: str) -> Iterator[Nodes]:
    for session in shared_agent.sessions():  # of nodes that a test before has killed
        if str(session["Name"]).startswith("consul-supervisor:"):
            shared_agent.session_destroy(session["ID"])
    with closing(Nodes(tmp_path, shared_agent, unique)) as both:
        yield both


def typed(block: str) -> list[str]:
    """Return the commands of a block, without comments."""
    return [line for text in block.splitlines() if (line := text.partition("#")[0].strip())]


@pytest.mark.long
@SHOWN.by(OPERATIONS, "First look", "sh", "look")
@SHOWN.by(OPERATIONS, "Who takes part?", "sh", "part")
@SHOWN.by(OPERATIONS, "Who led, and why it changed", "sh", "led")
@SHOWN.by(OPERATIONS, "Who led, and why it changed", "text", "led_printed")
@SHOWN.by(OPERATIONS, "Reload", "sh", "reload")
@SHOWN.by(OPERATIONS, "Reload", "text", "reload_printed")
@SHOWN.by(OPERATIONS, "Rotate a token", "sh", "rotate")
@SHOWN.by(OPERATIONS, "Change a limit", "sh", "limit")
def test_the_commands_that_move_no_lock_print_and_do_what_is_shown(
    look: str,
    part: str,
    led: str,
    led_printed: str,
    reload: str,
    reload_printed: str,
    rotate: str,
    limit: str,
    nodes: Nodes,
    shared_agent: Agent,
    tmp_path: Path,
) -> None:
    nodes.start()
    *ours, journal = typed(look)
    assert journal.startswith(f"journalctl -u {UNIT.stem} ")
    nodes.run_all(ours)

    nodes.wait_candidate()
    members, cluster, orphans = (nodes.run_all([line]) for line in typed(part))
    assert members.startswith("app: election ") and ", 1 holder, 1 candidate\n" in members
    assert cluster.count("\nrebuild ") == 2 and "consul-supervisor:rebuild" not in orphans

    (line,) = typed(led)
    until(lambda: nodes.shell.ended(nodes.here(line))[0] == 0, "the tenure is told")
    head, first = nodes.run_all([line]).splitlines()
    shown_head, shown, *_ = led_printed.splitlines()
    assert head.split() == shown_head.split()
    assert [len(cell) for cell in first.split()[2:]] == [len(cell) for cell in shown.split()[2:]]

    config = nodes.config("node1", on_lose=[HOOK])
    config["semaphores"]["rebuild"]["run"] = {"exec": ["sleep", "60"]}
    nodes.first.rewrite(config)
    assert nodes.run_all(typed(reload)) == reload_printed

    assert f" {TOKEN}\n" in rotate
    (tmp_path / "new-token").write_text("another\n")
    nodes.run_all(typed(rotate))
    nodes.first.wait_line("token-renewed")

    nodes.run_all(typed(limit))
    record = shared_agent.kv_get(f"{nodes.prefix}/.lock")
    assert record is not None and b'"Limit":5' in record["Value"].replace(b" ", b"")


@pytest.mark.long
@SHOWN.by(OPERATIONS, "Freeze: planned work on Consul", "sh")
def test_a_freeze_and_its_end_move_no_lock(shown: str, nodes: Nodes) -> None:
    nodes.start()
    check, reload, status = typed(shown)

    def lasts_s() -> float:
        (item,) = json.loads(nodes.run_all([status]))["items"]
        return float(item["lease_left_s"])

    for outage, enough in (("2h", lambda: lasts_s() > 7200.0), ("1m", lambda: 60.0 < lasts_s() < 80.0)):
        fence = {"shell": "false", "target": "n1", "exclusive": True, "outage": outage}
        nodes.first.rewrite(nodes.config("node1", fence=fence))
        assert "without an answer from Consul are ridden out" in nodes.run_all([check])
        assert nodes.run_all([reload]) == "app: changed\n"
        until(enough, f"it lasts for {outage}")
    assert nodes.run_all(["consul-supervisor leader app"]) == "node1\n"


@pytest.mark.long
@SHOWN.by(OPERATIONS, "Orders to all nodes", "sh", "orders")
def test_orders_reach_all_nodes(orders: str, nodes: Nodes) -> None:
    nodes.start()
    pause, resume, step_down = typed(orders)
    nodes.run_all([pause])
    for node in nodes.nodes:
        assert node.wait_line("ordered", item="app", user=f"{getpass.getuser()}@{socket.gethostname()}")
    nodes.run_all([resume])
    nodes.nodes[1].wait_line("order-over")
    assert "node2 holds it" in nodes.run_all([step_down])
    nodes.run_all(["consul-supervisor resume app"])
    nodes.first.wait_line("role", item="app", role="waiting")
    printed = nodes.run_all([step_down])
    assert "node2 is asked to step down" in printed and "node1 holds it" in printed


@pytest.mark.long
@SHOWN.by(OPERATIONS, "Drain a node", "sh")
def test_two_commands_drain_a_node_and_bring_it_back(shown: str, nodes: Nodes, shared_agent: Agent) -> None:
    nodes.start()
    drain, undrain = typed(shown)
    with candidate_elsewhere(shared_agent, "consul-supervisor:app"):
        nodes.run_all([drain])
    assert nodes.shell.ended("consul-supervisor holds app")[0] == 1
    nodes.nodes[1].wait_line("role", item="app", role="holding")
    nodes.run_all([undrain])
    nodes.first.wait_line("role", item="app", role="waiting", former_role="paused")


@pytest.mark.long
@SHOWN.by(OPERATIONS, "Pause and hand over", "sh", "drain")
@SHOWN.by(OPERATIONS, "Pause and hand over", "text", "printed")
@SHOWN.by(OPERATIONS, "When the work is done", "sh", "done")
def test_a_drained_node_holds_nothing_and_is_a_standby_again_at_once(
    drain: str, printed: str, done: str, nodes: Nodes
) -> None:
    """The drained node rests for 60 s and is not restarted, so only the resume lets it contend again."""
    nodes.start()
    second = nodes.nodes[1]
    figure = r"\d+\.\d s after"
    assert re.sub(figure, "", nodes.run_all(typed(drain))) == re.sub(figure, "", printed)
    assert nodes.shell.ended("consul-supervisor holds app")[0] == 1
    second.wait_line("role", item="app", role="holding")
    nodes.run_all(typed(done))
    nodes.first.wait_line("role", item="app", role="waiting")
    assert second.stop() == 0
    until(
        lambda: len(nodes.first.lines("role", item="app", role="holding")) == 2,
        "the drained one leads",
        SOON_S,
    )


def test_the_play_that_patches_drains_one_node_at_a_time() -> None:
    """tests/system/machine runs it."""
    (play,) = yaml.safe_load((ROOT / "examples/ansible/playbooks/patch.yml").read_text())
    assert play["serial"] == 1, "all nodes at once would leave nobody"


@pytest.mark.long
@SHOWN.by(OPERATIONS, "Pause and hand over", "sh", "drain")
@SHOWN.by(OPERATIONS, "When the work is done", "sh", "undo")
def test_a_drain_that_finds_no_successor_is_undone_at_once(drain: str, undo: str, nodes: Nodes) -> None:
    """The step-down still waits for a successor while another shell runs the resume."""
    nodes.start()
    assert nodes.nodes[1].stop() == 0
    pause, step_down, _ = typed(drain)
    nodes.run_all([pause, f"{step_down} &"])
    nodes.first.wait_line("role", item="app", role="paused")
    nodes.run_all(typed(undo))
    until(
        lambda: len(nodes.first.lines("role", item="app", role="holding")) == 2,
        "this node leads again",
        SOON_S,
    )
    assert nodes.shell.ended("consul-supervisor holds app")[0] == 0


@pytest.mark.long
@SHOWN.by(OPERATIONS, "Rehearse a hand-over", "sh", "rehearse")
@SHOWN.by(OPERATIONS, "Hand over to a named node", "sh", "named")
def test_a_rehearsed_handover_comes_back_and_the_named_node_takes_over(
    rehearse: str, named: str, nodes: Nodes, shared_agent: Agent
) -> None:
    """Both nodes have the name of their one agent in Consul."""
    nodes.start()
    second = nodes.nodes[1]
    nodes.wait_candidate()
    node = shared_agent.call("GET", "/agent/self").json()["Config"]["NodeName"]
    step_down, events = (line.replace("node2", node) for line in typed(rehearse))
    assert " holds it, " in nodes.run_all([step_down])
    assert "losing (step-down), was holding: rehearsal" in nodes.run_all([events])
    second.wait_line("role", item="app", role="holding")
    nodes.first.wait_line("role", item="app", role="waiting")  # its former session is gone
    nodes.wait_candidate()
    with nodes.shell_of(second) as elsewhere:
        assert " holds it, " in elsewhere.run(step_down)
    until(lambda: len(nodes.first.lines("role", item="app", role="holding")) == 2, "it holds again")

    second.wait_line("role", item="app", role="waiting")
    nodes.wait_candidate()
    members, step_down = typed(named)
    nodes.run_all([members])
    result = nodes.run_all([step_down.replace("node2", node)])
    assert re.fullmatch(r"app: \S+ holds it, \d\.\d s after this node released it\n", result)


@pytest.mark.long
@SHOWN.by(OPERATIONS, "Move state_dir", "sh")
def test_moved_records_keep_a_pause(shown: str, nodes: Nodes, tmp_path: Path) -> None:
    stop, move, start = typed(shown)
    assert (stop, start) == (f"systemctl stop {UNIT.stem}", f"systemctl start {UNIT.stem}")
    program, old, new = move.split()
    assert f"`state_dir: {new}`" in OPERATIONS.read_text()
    nodes.start()
    nodes.run_all(["consul-supervisor pause app"])
    assert nodes.first.stop() == 0
    moved = tmp_path / "moved"
    nodes.run_all([f"{program} {nodes.first.state_dir} {moved}"])
    nodes.first.rewrite({**nodes.config("node1"), "state_dir": str(moved)})
    nodes.first.start()
    nodes.first.wait_line("role", item="app", role="paused")


@SHOWN.by(OPERATIONS, "Upgrade without a failover", "sh")
def test_the_shown_upgrade_checks_before_it_restarts(shown: str) -> None:
    """tests/system/machine/test_crash.py tries on a booted machine that the upgrade keeps leadership."""
    start = re.search(r"^ExecStart=(\S+)/consul-supervisor run (\S+)$", UNIT.read_text(), re.MULTILINE)
    assert start is not None
    assert typed(shown) == [
        f"{start[1]}/pip install --upgrade .",
        "systemctl daemon-reload",
        f"consul-supervisor check --here {start[2]} && systemctl restart {UNIT.stem}",
        "consul-supervisor status",
    ]


# --- quotations of the page -----------------------------------------------------------------------


@cache
def texts() -> str:
    """Return all constant text of the product, f-strings included, with a gap between two pieces."""
    found = []
    for file in sorted((ROOT / "supervisor").rglob("*.py")):
        nodes = ast.walk(ast.parse(file.read_text()))
        found += [node.value for node in nodes if isinstance(node, ast.Constant) and type(node.value) is str]
    return "\0".join(found)


TROUBLES = rows(OPERATIONS, "symptom")


def test_each_symptom_has_a_remedy() -> None:
    assert len(TROUBLES) == len({symptom for symptom, _, _ in TROUBLES})
    assert all(shows and do for _, shows, do in TROUBLES)


@pytest.mark.parametrize("row", TROUBLES, ids=[row[0] for row in TROUBLES])
def test_the_words_of_each_symptom_are_the_products_own(row: list[str]) -> None:
    """``…`` stands for variable parts; a sentence may be made of several texts."""
    events = {*first_codes(LOGS, "event"), *Reason, *Role}
    product, metrics = texts(), (ROOT / "docs" / "metrics.md").read_text()
    for piece in re.findall(r"`([^`]+)`", row[1]):
        words = [part.strip() for part in re.split(r"[…,;:.]", piece)]
        known = piece in events or piece in OF_OTHERS or f"`{piece}`" in metrics
        known = known or piece.startswith("consul-supervisor ")  # test_named_commands.py checks commands
        assert known or all(part in product for part in words), piece


def test_every_event_that_needs_an_operator_is_named() -> None:
    """The events that need an operator are the error events of the log."""
    errors = {row[0].strip("`") for row in rows(LOGS, "event") if "error" in row[1]}
    page = set(code_of(OPERATIONS)) | {
        "token-file",  # security.md, as `tls-files`
        "tls-files",
        "role",
        "leftover-process",
        "consul-refused",
    }
    assert errors <= page, errors - page
