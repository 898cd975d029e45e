"""docs/tools.md: the block for Puppet, applied by Puppet itself."""

import sys
from contextlib import ExitStack, closing
from pathlib import Path

from tests.support.captured import captured
from tests.support.consul import Agent
from tests.support.pages import TOOLS, fenced
from tests.support.programs import script
from tests.support.supervisor import ROOT, Supervisor, command, until

APPLY = ["puppet", "apply", "--detailed-exitcodes", "--color=false"]
CHANGED, APPLY_S = 2, 120.0
FOLDERS = ("confdir", "vardir", "codedir", "rundir", "logdir")


def place(node: Supervisor) -> list[str]:
    return ["--socket", str(node.folder / "control.sock")]


def test_puppet_runs_the_command_on_the_leader_alone(
    shared_agent: Agent, tmp_path: Path, unique: str
) -> None:
    """Each node has a folder of its own in place of /usr/local/bin, so one catalogue serves all of them."""
    (shown,) = (each.text for each in fenced(TOOLS) if each.language == "puppet")
    config = {"consul": {"address": shared_agent.url}, "elections": {"db": {"key": unique}}}
    with ExitStack() as ends:
        nodes = [Supervisor(tmp_path / name, config) for name in ("leads", "waits", "off")]
        for node in nodes:
            ends.enter_context(closing(node))
            script(node.folder / "migrate", f"echo {node.folder.name} >>{tmp_path}/migrated")
            ours = f'exec {sys.executable} -m supervisor "$@" {" ".join(place(node))}'
            script(node.folder / "consul-supervisor", f"cd {ROOT}; {ours}")
        leads, waits, _ = nodes
        leads.start()
        leads.wait_line("role", role="holding")
        waits.start()
        until(lambda: command("holds", "db", *place(waits)).returncode == 1, "it knows who holds")
        catalogue = tmp_path / "migrate.pp"
        catalogue.write_text("".join(shown.replace("/usr/local/bin", str(node.folder)) for node in nodes))
        places = [f"--{name}={tmp_path}/{name}" for name in FOLDERS]
        done = captured([*APPLY, *places, catalogue], timeout=APPLY_S)
        assert done.returncode == CHANGED, done.stdout + done.stderr
        assert (tmp_path / "migrated").read_text() == "leads\n"
