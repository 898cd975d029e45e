"""start.md is true: its steps run as they stand, in one bash, and print the shown output.

Output is compared except for times and numbers that differ each time.
"""

import json
import re
import socket
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from supervisor.config import load
from supervisor.core.lease import lease_of
from tests.support.consul import BINARY, HOST, Agent, free_ports
from tests.support.pages import ROOT, START, Block, Shown
from tests.support.shell import Shell, constant, paste
from tests.support.supervisor import Supervisor

SHOWN = Shown(START)
MINUTE = SHOWN.of(START, "60 seconds")
FIGURES = SHOWN.of(START, "How long each case takes")
MISTAKE = SHOWN.of(START, "A mistake")
SHOWN.of(START, "On three nodes")  # tests/system/machine/test_first_election.py runs these commands
FIRST_LINE = "consul-supervisor dev-agent"


def test_every_block_of_the_start_page_has_a_test() -> None:
    assert SHOWN.untested() == []


@pytest.fixture
def shell(tmp_path: Path) -> Iterator[Shell]:
    """Return a shell with the shown programs; an agent gets ports of this test and dies with its shell."""
    http, server, serf = free_ports(3)
    ports = {"http": http, "server": server, "serf_lan": serf, "serf_wan": -1, "dns": -1, "grpc": -1}
    (tmp_path / "consul.json").write_text(json.dumps({"bind_addr": HOST, "ports": ports}))
    address = {"HOME": str(tmp_path), "PYTHONPATH": str(ROOT), "CONSUL_HTTP_ADDR": f"{HOST}:{http}"}
    with closing(Shell(tmp_path, tmp_path, address)) as one:
        one.provide("consul", f'"{BINARY}" "$@" -config-file={tmp_path}/consul.json')
        port = f'$([ "$1" != dev-agent ] || echo --port {http})'
        one.provide("consul-supervisor", f'"{sys.executable}" -m supervisor "$@" {port}')
        yield one


def follow(shell: Shell, blocks: list[Block]) -> None:
    """Run each block of commands; a block of output below it must be the output of the last command."""
    for block, below in zip(blocks, [*blocks[1:], None], strict=True):
        if block.language == "sh":
            paste(shell, block.text, below.text if below and below.language == "text" else "")


@pytest.mark.long
@pytest.mark.parametrize("first", [FIRST_LINE, "consul agent -dev"])
def test_the_first_minute_is_the_same_with_either_agent(first: str, shell: Shell) -> None:
    """The page names both agents for the first line, and shows one."""
    assert f"write `{first}`" in START.read_text() or MINUTE[0].text.startswith(f"{first} >")
    follow(shell, [block._replace(text=block.text.replace(FIRST_LINE, first)) for block in MINUTE])


def declaration() -> Block:
    (block,) = (block for block in MINUTE if block.text.startswith("cat >demo.yaml"))
    return block


def test_check_prints_the_shown_figures(shell: Shell) -> None:
    follow(shell, [declaration(), *FIGURES])


def test_the_failover_in_words_is_that_of_the_file(shell: Shell, tmp_path: Path) -> None:
    follow(shell, [declaration()])
    lease = lease_of(load(tmp_path / "demo.yaml", {"NODE": "node1"}, "node1").items[0])
    assert f"after `2 x ttl + lock_delay`, which is {lease.failover_s:g} s here" in START.read_text()


def test_a_mistake_is_reported_as_shown(shell: Shell) -> None:
    follow(shell, MISTAKE)


def test_the_start_page_names_all_examples() -> None:
    named = re.findall(r"\(\.\./examples/configs/(\S+?)\)", START.read_text())
    assert sorted(named) == sorted(path.name for path in (ROOT / "examples" / "configs").iterdir())


@SHOWN.by(START, "What a hook receives", "json", "text")
def test_a_hook_gets_the_shown_object(text: str, shared_agent: Agent, tmp_path: Path, unique: str) -> None:
    """The object of a real on_lose has these names in their order, and the values that are not of the run."""
    shown = json.loads(text)
    told = tmp_path / "told"
    election = {
        "key": unique,
        "session": {"ttl": "2s", "lock_delay": "45s"},
        "on_acquire": [{"exec": ["true"]}],
        "on_lose": [{"shell": f"cat >{told}"}],
    }
    with closing(
        Supervisor(
            tmp_path, {"consul": {"address": shared_agent.url}, "elections": {shown["name"]: election}}
        )
    ) as one:
        one.start()
        one.wait_line("role", role="holding")
        assert one.stop() == 0
    seen = json.loads(told.read_text())
    assert list(seen) == list(shown)
    for this_run in ("session", "fencing_token", "time", "time_left", "key"):
        assert type(seen.pop(this_run)) is type(shown.pop(this_run))
    host = socket.gethostname()
    assert constant(json.dumps(seen).replace(host, "vm1")) == constant(json.dumps(shown))
