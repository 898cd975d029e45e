"""The pages for new readers: they name every other page, and their drawings and files are the product's."""

import re
import shlex
import socket
import subprocess
from contextlib import closing
from pathlib import Path
from xml.etree import ElementTree

import pytest
import yaml

from supervisor.commands.cli.arguments import parser
from supervisor.commands.cli.cluster_commands import HISTORY
from supervisor.config import load
from supervisor.core.actions import Reason, Role
from supervisor.core.lease import lease_of
from supervisor.daemon.fleet.tenures import SILENT
from tests.support.captured import captured
from tests.support.consul import BINARY, Agent
from tests.support.pages import FIRST_PAGES, RECIPES, ROOT, START, SVG, Shown, bars_of
from tests.support.programs import script
from tests.support.supervisor import PATIENCE_S, Supervisor, until

INDEX, MOVING, COMPARISON = FIRST_PAGES
SHOWN = Shown(*FIRST_PAGES, RECIPES)
MEASURED = ROOT / "bench" / "measured.md"
MINIMAL = ROOT / "examples" / "configs" / "minimal.yaml"
LINK = re.compile(r"\]\(([^)#]+)")
NO_RECIPES = {"configs", "consul-service", "grafana", "prometheus"}


def test_every_block_of_the_first_pages_has_a_test() -> None:
    assert SHOWN.untested() == []


@SHOWN.by(MOVING, "From keepalived", "yaml")
def test_the_shown_notify_backup_leaves_a_node_alone_that_acts(shown: str) -> None:
    notify = yaml.safe_load(shown)["on_change"][0]["shell"]
    notify = notify.replace("/usr/local/sbin/notify-backup", "echo ran")
    for role in Role:
        environ = {"CONSUL_SUPERVISOR_ROLE": role}
        said = subprocess.run(
            ["/bin/sh", "-c", notify], env=environ, check=True, capture_output=True, text=True
        )
        assert (said.stdout == "") == (role in ("acquiring", "holding", "losing", "stuck")), role


def test_the_index_leads_to_every_page() -> None:
    linked = set(LINK.findall(INDEX.read_text()))
    assert {page.name for page in INDEX.parent.glob("*.md")} - {"README.md"} == {
        link for link in linked if "/" not in link
    }


def test_every_folder_of_the_examples_is_a_recipe() -> None:
    linked = {Path(link).parent.name for link in LINK.findall(RECIPES.read_text()) if "README" in link}
    folders = {folder.name for folder in (ROOT / "examples").iterdir() if folder.is_dir()} - NO_RECIPES
    assert linked == folders


RECIPES_PAGES = sorted((ROOT / "examples").glob("*/README.md"))


@pytest.mark.parametrize(
    "page",
    [page for page in RECIPES_PAGES if page.parent.name not in {"ansible", "container", *NO_RECIPES}],
    ids=lambda page: page.parent.name,
)
def test_a_recipe_goes_away_without_touching_other_elections(page: Path) -> None:
    """tests/system/machine/test_start.py tries on a booted machine which elections a reload leaves alone."""
    _, heading, gone = re.split(
        r"^## (Undo|Take it away|Go back|Recover, undo)$", page.read_text(), flags=re.M
    )
    assert "systemctl reload-or-restart consul-supervisor" in gone, heading
    assert not re.search(r"systemctl (stop|restart) consul-supervisor", gone), heading


def test_every_role_but_those_at_the_ends_is_in_the_drawing() -> None:
    drawing = ElementTree.parse(START.with_name("election.svg"))
    said = " ".join(text.text or "" for text in drawing.iter(f"{SVG}text"))
    assert set(Role) - {role for role in Role if role in said} == {Role.OBSERVER, Role.STOPPED}


def test_the_failover_is_drawn_to_scale(tmp_path: Path) -> None:
    lease = lease_of(load(MINIMAL, {}, "node1").items[0])
    assert lease.ttl_s is not None and lease.failover_s is not None
    place = START.with_name("failover.svg")
    drawing, bars = ElementTree.parse(place), bars_of(place)
    begins, width = bars["ttl"]
    scale = width / (2 * lease.ttl_s)
    assert bars["lock-delay"][0] == pytest.approx(begins + width)
    assert bars["lock-delay"][1] == pytest.approx(scale * lease.lockout_s)
    assert bars["acquire"][0] == pytest.approx(begins + scale * lease.failover_s)
    said = [text.text for text in drawing.iter(f"{SVG}text")]
    assert f"{lease.failover_s:g} s at most" in said


def test_every_cell_about_another_product_names_its_source() -> None:
    """A link leads to a page, an issue or a test; the tests of all pages check its target."""
    products = COMPARISON.read_text().partition("\n## ")[0]
    rows = [line for line in products.splitlines() if line.startswith("| ")]
    cells = [cell for row in rows[1:] for cell in row.strip("|").split(" | ")[1:]]
    assert len(cells) >= 40
    assert [cell for cell in cells if "](" not in cell] == []


def test_the_figures_with_a_fence_beside_pacemaker_are_those_of_the_bench() -> None:
    table = MEASURED.read_text().partition("\n## pacemaker\n")[2].partition("\n## ")[0]
    measured = [
        [cell.strip() for cell in line.split("|")[1:-1]] for line in table.splitlines() if "|" in line
    ]
    page = COMPARISON.read_text()
    for loss, shown in (("killed", "killed"), ("paused for 25 s", "paused")):
        figures = {row[0]: f"{row[2]}, {row[3]}" for row in measured if row[1] == f"machine {loss}"}
        ours, quick = (figures[f"consul-supervisor{more}"] for more in ("", ", quick gossip"))
        theirs, token = (
            figures[f"Pacemaker, {more}"] for more in ("default token (3.65 s)", "token 1000 (1.65 s)")
        )
        beside = f"{theirs}; with `token: 1000` {token} | {ours}; with quicker gossip {quick}"
        row = f"| its machine is {shown}, a fence answers | {beside} |"
        assert row in page.splitlines(), row


LOCKS = SHOWN.of(MOVING, "From `consul lock`, without a daemon")


def test_the_shown_locks_have_one_key_and_one_command() -> None:
    """tests/consul/locks/test_exclusion.py tries that the two exclude each other."""
    theirs, ours = (shlex.split(block.text) for block in LOCKS)
    assert theirs[:2] == ["consul", "lock"] and ours[:2] == ["consul-supervisor", "lock"]
    asked = parser().parse_args(ours[1:])
    assert asked.key == f"{theirs[-2]}/.lock" and asked.argv == shlex.split(theirs[-1])


def test_every_option_of_consul_lock_is_in_the_table() -> None:
    help = captured([str(BINARY), "lock", "-help"])
    options = re.findall(r"^  (-[a-z-]+)", help.stdout + help.stderr, re.MULTILINE)
    assert len(options) > 15
    table = MOVING.read_text().partition("| option of `consul lock` |")[2].partition("\n\n")[0]
    cells = [row.split(" | ")[0] for row in table.splitlines()]
    assert [option for option in options if not any(f"`{option}`" in cell for cell in cells)] == []


@pytest.mark.long
@SHOWN.by(MOVING, "From `consul lock`", "sh", "theirs")
@SHOWN.by(MOVING, "From `consul lock`", "yaml", "ours")
def test_a_lock_moves_from_consul_lock_node_by_node(
    shared_agent: Agent, tmp_path: Path, unique: str, theirs: str, ours: str
) -> None:
    """The steps are those of the page with another program and prefix, and two nodes never run it at once."""
    running, twice = tmp_path / "running", tmp_path / "twice"
    text = f"mkdir {running} || touch {twice}\ntrap 'rmdir {running}; exit' TERM\n"
    program = script(tmp_path / "app", f"{text}while :; do sleep 0.05; done")
    moved = [
        text.replace("service/app", unique).replace("/usr/local/bin/app", str(program))
        for text in (theirs, ours)
    ]
    argv = moved[0].split()
    assert argv[:2] == ["consul", "lock"]
    lock = ["setpriv", "--pdeathsig", "TERM", str(BINARY), "lock", f"-http-addr={shared_agent.url}"]
    elections = {unique: yaml.safe_load(moved[1])["elections"]["app"]}
    config = {"consul": {"address": shared_agent.url}, "elections": elections}
    with closing(Supervisor(tmp_path / "one", config)) as one:
        with subprocess.Popen(
            [*lock, *argv[2:]], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        ) as old_node:
            until(running.exists, "consul lock runs it")
            one.start()
            one.wait_line("started")
            named = f"consul-supervisor:{unique}"
            until(lambda: named in [each["Name"] for each in shared_agent.sessions()], "both contend")
            assert not one.lines("role", role="holding")
            old_node.terminate()
            assert old_node.wait(PATIENCE_S) is not None
        one.wait_line("role", role="holding")
        until(running.exists, "the supervisor runs it")
        refused = captured([*lock, "-timeout=1s", unique, f"touch {twice}"])
        assert refused.returncode == 1, "consul lock does not hold beside an election"
        assert one.stop() == 0
        one.assert_no_fault()
    assert not twice.exists()


@SHOWN.by(MOVING, "From Patroni's callbacks", "yaml")
def test_an_observer_follows_the_key_of_patroni(
    shared_agent: Agent, tmp_path: Path, unique: str, shown: str
) -> None:
    """Another program locks the key with its name, as Patroni does; the observer needs no session."""
    told, us = tmp_path / "told", socket.gethostname()
    callback = script(tmp_path / "callback", f'echo "$@" >>{told}')
    key = f"service/{unique}/leader"
    text = shown.replace("service/batman/leader", key).replace("/etc/patroni/callback", str(callback))
    one = Supervisor(tmp_path, {"consul": {"address": shared_agent.url}, **yaml.safe_load(text)})
    patroni = shared_agent.session_create(Name=unique)
    try:
        assert shared_agent.acquire(key, patroni, us.encode())
        one.start()
        until(lambda: told.exists() and "primary" in told.read_text(), "it is told that its member leads")
        shared_agent.kv_put(key, b"another")
        until(lambda: "replica" in told.read_text(), "it is told that another leads")
        assert told.read_text() == "on_role_change primary batman\non_role_change replica batman\n"
        assert one.stop() == 0
    finally:
        one.close()
        shared_agent.session_destroy(patroni)


SHOWN.of(MOVING, "From Pacemaker's agents")  # tests/system/applications/test_ocf_agents.py runs these
LISTS = SHOWN.of(COMPARISON, "Beside `patronictl`")


def test_the_lists_beside_those_of_patronictl_are_such_as_ours() -> None:
    """Patroni's own are as it printed them."""
    _, members, _, history = (block.text.splitlines() for block in LISTS)
    assert history[0].split() == [column.title for column in HISTORY]
    assert SILENT in history[2] and Reason.STEP_DOWN in history[3]
    parts = [line.split()[0] for line in members[1:4]]
    assert parts == ["holder", Role.RESTING, "silent"] and f"{parts[1]} after step-down" in "".join(members)
