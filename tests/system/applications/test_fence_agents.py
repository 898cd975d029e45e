"""The commands of docs/fence.md, with the fence agents that Debian has."""

import re
import shlex
from pathlib import Path

import pytest
import yaml

from tests.support.captured import captured
from tests.support.supervisor import ROOT, command

PAGE = (ROOT / "docs" / "fence.md").read_text()
COMMANDS = sorted(set(re.findall(r"fence_[a-z]+ --[^\n`]*", PAGE)))


@pytest.mark.parametrize("line", COMMANDS, ids=lambda line: line.split()[0])
def test_an_agent_knows_the_options_that_the_page_gives_it(line: str) -> None:
    agent, *arguments = shlex.split(line)
    told = captured([agent, "--help"], timeout=60).stdout
    options = {each.partition("=")[0] for each in arguments if each.startswith("--")}
    assert options and not {
        option for option in options if f"{option}=" not in told and f"{option} " not in told
    }


@pytest.mark.parametrize(("kind", "code"), [("file", 0), ("fail", 1)])
def test_an_agent_is_tried_as_the_fence_that_the_daemon_would_run(
    tmp_path: Path, kind: str, code: int
) -> None:
    """The dummy of the package switches a machine off by writing so into a file, or fails."""
    target = tmp_path / "db1"
    target.write_text("on")
    file = f'--status-file="{tmp_path}/$CONSUL_SUPERVISOR_PREVIOUS_TARGET"'
    fence = {"shell": f"fence_dummy --type={kind} {file} --action=off", "timeout": "30s", "target": "db2"}
    config = tmp_path / "config.yaml"
    config.write_text(yaml.safe_dump({"elections": {"db": {"fence": fence}}}))
    done = command("test-hook", "--config", str(config), "db", "fence", "--target", "db1")
    assert (done.returncode, target.read_text()) == (code, "off" if code == 0 else "on"), done
