"""docs/moving.md: hooks that call an agent of Debian's resource-agents, in a network of its own."""

from pathlib import Path

from tests.docs.test_first_pages import MOVING
from tests.support.captured import captured
from tests.support.hung import needs_root
from tests.support.pages import fenced
from tests.support.supervisor import COMMAND, ROOT

pytestmark = needs_root
TRIAL = """
config=$1; shift
ip link add v0 type veth peer name v1; ip link set v0 up; ip link set v1 up
ip address add 10.0.0.1/24 dev v0
for hook in on_acquire on_lose on_lose; do
    "$@" test-hook address "$hook[0]" --config "$config" | grep 'result '
    ip -o address show | grep -c 10.0.0.9/24
done
"""


def test_the_shown_hooks_take_an_address_announce_it_and_drop_it_twice(tmp_path: Path) -> None:
    shown = {each.language: each.text for each in fenced(MOVING) if each.section == "From Pacemaker's agents"}
    script, config = tmp_path / "address", tmp_path / "config.yaml"
    script.write_text(shown["sh"])
    script.chmod(0o755)
    config.write_text(shown["yaml"].replace("/usr/local/sbin/address", str(script)))
    argv = ["unshare", "--net", "--mount", "sh", "-c", TRIAL, "sh", str(config), *COMMAND]
    done = captured(argv, cwd=ROOT, timeout=120)
    told = [" ".join(line.split()) for line in done.stdout.splitlines()]
    ok = "result ok: exit 0"  # and nothing that it left running was killed
    assert told == [ok, "1", ok, "0", ok, "0"], done
