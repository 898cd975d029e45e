"""The modules of the collection, played by the real Ansible for two real daemons, over local connections."""

import json
import shutil
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.support.candidates import candidate_elsewhere
from tests.support.captured import captured
from tests.support.consul import Agent
from tests.support.programs import script
from tests.support.supervisor import ENVIRON, ROOT, Supervisor, command, until
from tests.system.machine.fleet import ANSIBLE, COUNTS, EXAMPLE, Count, Played

NAME = "consul_supervisor.consul_supervisor"
DRAIN, WAIT, INFO = (f"{NAME}.consul_supervisor_{each}" for each in ("drain", "wait", "info"))
PLAY_S = 120.0


class Nodes:
    """Two daemons that Ansible takes for two hosts, with the collection installed before them."""

    def __init__(self, folder: Path, agent: Agent, unique: str, opened: ExitStack) -> None:
        self.folder, self.url, self.key = folder, agent.url, f"{unique}/leader"
        home = folder / "ansible_collections" / NAME.replace(".", "/")
        shutil.copytree(EXAMPLE, home)
        self.daemons: dict[str, Supervisor] = {}
        for name in ("a", "b"):
            session = {"name": f"{unique}-shared", "ttl": "10s", "lock_delay": "20s"}
            item = {"key": self.key, "value": name, "session": session}
            config = {"consul": {"address": agent.url}, "elections": {"app": item}}
            daemon = self.daemons[name] = Supervisor(folder / name, config)
            daemon.start()
            opened.callback(daemon.close)
            wanted = "holding" if name == "a" else "waiting"
            until(partial(self.is_ready, name, wanted), f"{name} is {wanted}", log=daemon.log_tail)
            self._install(name, daemon)
        self.elsewhere = opened.enter_context(ExitStack())  # the candidate by whom a drain is not refused
        self.elsewhere.enter_context(candidate_elsewhere(agent, f"{unique}-shared"))

    def _install(self, name: str, daemon: Supervisor) -> None:
        """Make a Python of this host, which finds the host's own command."""
        bin_ = self.folder / name / "bin"
        bin_.mkdir()
        places = f'--config "{daemon.config_path}" --socket "{daemon.folder}/control.sock"'
        run = f'cd {ROOT} && PYTHONPATH= exec "{sys.executable}" -m supervisor "$@"'
        programs = {
            "consul-supervisor": f'case "$1" in version) {run};; *) {run} {places};; esac',
            "python": f'PATH="{bin_}:$PATH" exec "{sys.executable}" "$@"',
        }
        for program, text in programs.items():
            script(bin_ / program, text)

    def play(self, playbook: list[dict[str, Any]], *options: str) -> Played:
        hosts = {
            name: {
                "ansible_connection": "local",
                "ansible_become": False,
                "ansible_python_interpreter": str(self.folder / name / "bin" / "python"),
            }
            for name in self.daemons
        }
        inventory = self.folder / "inventory.yml"
        inventory.write_text(yaml.safe_dump({"consul_supervisor": {"hosts": hosts}}))
        (self.folder / "play.yml").write_text(yaml.safe_dump(playbook, sort_keys=False))
        environ = {
            **ENVIRON,
            "ANSIBLE_COLLECTIONS_PATH": str(self.folder),
            "ANSIBLE_HOME": str(self.folder / "ansible"),
            "ANSIBLE_NOCOLOR": "1",
            "PYTHONWARNINGS": "",
            "CONSUL_HTTP_ADDR": self.url,
            "HOME": str(self.folder),
            "LC_ALL": "C.UTF-8",
        }
        argv = [str(ANSIBLE / "ansible-playbook"), "-i", str(inventory), "play.yml", *options]
        ran = captured(argv, cwd=self.folder, env=environ, timeout=PLAY_S)
        found = {m[1]: Count(int(m[2]), int(m[3]), int(m[5])) for m in COUNTS.finditer(ran.stdout)}
        return Played(ran.returncode, ran.stdout + ran.stderr, found)

    def item(self, name: str) -> dict[str, Any]:
        done = command("status", "--json", "--socket", f"{self.daemons[name].folder}/control.sock")
        found: dict[str, Any] = json.loads(done.stdout)["items"][0] if done.stdout else {"role": ""}
        return found

    def role(self, name: str) -> str:
        return str(self.item(name)["role"])

    def is_ready(self, name: str, wanted: str) -> bool:
        item = self.item(name)
        return item["role"] == wanted and bool(item["session"])


@pytest.fixture
def nodes(tmp_path: Path, shared_agent: Agent, unique: str) -> Iterator[Nodes]:
    with ExitStack() as opened:
        yield Nodes(tmp_path, shared_agent, unique, opened)


def tasks(*found: dict[str, Any], hosts: str = "a") -> list[dict[str, Any]]:
    return [{"hosts": hosts, "gather_facts": False, "tasks": list(found)}]


def test_a_node_is_drained_once_and_contends_again_once(nodes: Nodes) -> None:
    drain = tasks({DRAIN: {"reason": "kernel update"}})
    looked = nodes.play(drain, "--check", "--diff")
    assert (looked.code, looked.counts["a"].changed) == (0, 1), looked.text
    assert '+    "paused": [' in looked.text and nodes.role("a") == "holding", "check mode changes nothing"
    assert not nodes.daemons["a"].lines("command-received")
    for changed in (1, 0):
        played = nodes.play(drain)
        assert (played.code, played.counts["a"].changed) == (0, changed), played.text
        assert (nodes.role("a"), nodes.role("b")) == ("paused", "holding")
    assert nodes.daemons["a"].wait_line("role", role="losing")["note"] == "kernel update"
    back = tasks({DRAIN: {"state": "contending", "wait": "30s"}})
    looked = nodes.play(back, "--check")
    assert looked.counts["a"].changed == 1 and nodes.role("a") == "paused", looked.text
    for changed in (1, 0):
        played = nodes.play(back)
        assert (played.code, played.counts["a"].changed) == (0, changed), played.text
        assert nodes.role("a") == "waiting"


def test_what_cannot_be_drained_fails_with_the_words_of_the_command(nodes: Nodes) -> None:
    nodes.daemons["b"].stop()
    played = nodes.play(tasks({DRAIN: {}}))
    assert played.code != 0 and "nobody took over" in played.text
    played = nodes.play(tasks({DRAIN: {}}, hosts="b"))
    assert played.code != 0 and "cannot ask the daemon" in played.text


def asked(given: dict[str, Any], why: str) -> list[dict[str, Any]]:
    """Return tasks that fail unless check mode and the real run are both refused, with these words."""
    both = [
        {DRAIN: given, "check_mode": looks, "ignore_errors": True, "register": kept}
        for kept, looks in (("looked", True), ("did", False))
    ]
    refused = [f"{kept} is failed and {why!r} in {kept}.msg" for kept in ("looked", "did")]
    return [*both, {"ansible.builtin.assert": {"that": refused}}]


def test_check_mode_fails_where_the_real_run_would(nodes: Nodes) -> None:
    nodes.elsewhere.close()
    force = {"force": True}
    played = nodes.play(
        tasks(
            *asked({}, "no other node would take over app"),
            *asked({**force, "reason": "kernel\nupdate"}, "one line of at most"),
            *asked({**force, "reason": "x" * 201}, "one line of at most"),
            {DRAIN: force, "check_mode": True, "register": "looked"},
            {"ansible.builtin.assert": {"that": ["looked is changed"]}},
        )
    )
    assert played.code == 0, played.text
    assert nodes.role("a") == "holding" and not nodes.daemons["a"].lines("command-received")
    nodes.daemons["a"].stop()
    back = {"state": "contending", "wait": "1s"}
    played = nodes.play(
        tasks(
            *asked({**back, "wait": "ever"}, "invalid duration ever"),
            {DRAIN: back, "check_mode": True, "register": "looked"},
            {"ansible.builtin.assert": {"that": ["looked is changed"]}},
        )
    )
    assert played.code == 0, played.text


def test_facts_a_wait_and_the_lookup_tell_who_leads(nodes: Nodes) -> None:
    leader = f"lookup('{NAME}.leader', '{nodes.key}', key=true, executable=command)"
    free = f"lookup('{NAME}.leader', '{nodes.key}/none', key=true, executable=command) is none"
    told = [
        *("it.roles.app == 'holding'", "it.leaders.app == 'a'", "it.tokens.app > 0", "it.paused == []"),
        *("it.running", "it.healthy", "it.version is version('0.2.0', '>=')", "waited.met"),
        *(f"{leader} == 'a'", free),
    ]
    read = tasks(
        {INFO: None, "register": "it"},
        {WAIT: {"name": "app", "state": "holding", "timeout": "5s"}, "register": "waited"},
        {"ansible.builtin.assert": {"that": told}},
    )
    read[0]["vars"] = {"command": str(nodes.folder / "plain")}
    script(nodes.folder / "plain", f'cd {ROOT}\nexec "{sys.executable}" -m supervisor "$@"')
    played = nodes.play(read)
    assert (played.code, played.counts["a"].changed) == (0, 0), played.text
    waits = tasks({WAIT: {"name": "app", "state": "holding", "timeout": "0s"}}, hosts="b")
    assert nodes.play(waits).code != 0
    assert nodes.play(waits, "--check").code == 0, "what it waits for may come of tasks that were skipped"
    nodes.daemons["b"].stop()
    gone = tasks({INFO: None, "register": "it"}, {"ansible.builtin.assert": {"that": ["not it.running"]}})
    played = nodes.play([{**gone[0], "hosts": "b"}])
    assert played.code == 0, played.text
