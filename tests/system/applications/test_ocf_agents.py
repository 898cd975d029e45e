"""docs/moving.md: hooks that call agents of Debian's resource-agents: an address, and a service."""

import os
from contextlib import closing
from pathlib import Path

import yaml

from tests.docs.test_first_pages import MOVING
from tests.support.captured import captured
from tests.support.consul import Agent
from tests.support.hung import needs_root
from tests.support.pages import fenced
from tests.support.supervisor import COMMAND, ROOT, Supervisor, until

TRIAL = """
config=$1; shift
ip link add v0 type veth peer name v1; ip link set v0 up; ip link set v1 up
ip address add 10.0.0.1/24 dev v0
for hook in on_acquire on_lose on_lose; do
    "$@" test-hook address "$hook[0]" --config "$config" | grep 'result '
    ip -o address show | grep -c 10.0.0.9/24
done
"""


def written(folder: Path, **changes: str) -> tuple[str, Path]:
    """Write the wrapper that the page shows, and return the YAML beside it and the path of the wrapper."""
    shown = {each.language: each.text for each in fenced(MOVING) if each.section == "From Pacemaker's agents"}
    script, text = folder / "address", shown["sh"]
    for old, new in changes.items():
        assert old in text
        text = text.replace(old, new)
    script.write_text(text)
    script.chmod(0o755)
    return shown["yaml"].replace("/usr/local/sbin/address", str(script)), script


@needs_root
def test_the_shown_hooks_take_an_address_announce_it_and_drop_it_twice(tmp_path: Path) -> None:
    config = tmp_path / "config.yaml"
    config.write_text(written(tmp_path)[0])
    argv = ["unshare", "--net", "--mount", "sh", "-c", TRIAL, "sh", str(config), *COMMAND]
    done = captured(argv, cwd=ROOT, timeout=120)
    told = [" ".join(line.split()) for line in done.stdout.splitlines()]
    ok = "result ok: exit 0"  # and nothing that it left running was killed
    assert told == [ok, "1", ok, "0", ok, "0"], done


def test_a_service_that_its_agent_finds_stopped_is_a_loss_and_is_started_again(
    shared_agent: Agent, tmp_path: Path, unique: str
) -> None:
    """Dummy, the agent of a service that is a file."""
    state = tmp_path / "state"
    shown, script = written(tmp_path, IPaddr2="Dummy", OCF_RESKEY_ip="OCF_RESKEY_state=$STATE OCF_RESKEY_ip")
    (election,) = yaml.safe_load(shown.replace("sleep 10", "sleep 0.1"))["elections"].values()
    config = {"consul": {"address": shared_agent.url}, "elections": {"address": {**election, "key": unique}}}
    environ = {"STATE": str(state), "HA_RSCTMP": str(tmp_path)}
    with closing(Supervisor(tmp_path / "one", config, environ)) as one:
        one.start()
        one.wait_line("role", role="holding")
        assert state.exists()
        state.unlink()
        lost = one.wait_line("role", role="losing")
        assert lost["reason"] == "run-exited"
        until(lambda: len(one.lines("role", role="holding")) == 2 and state.exists(), "it is started again")
        assert one.stop() == 0
    assert not state.exists()
    for action, code in (("stop", 0), ("monitor", 7)):
        assert captured([script, action], env={**os.environ, **environ}).returncode == code
