"""``run`` as process 1 of a container, here without an agent: it reaps, and hears Ctrl-C once."""

import os
from pathlib import Path

import pytest

from tests.support.supervisor import COMMAND, until
from tests.support.terminal import Terminal

CONTAINER = ("unshare", "--pid", "--fork", "--kill-child", "--mount-proc")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root makes a container; CI is root")
def test_run_reaps_orphans_as_process_1_and_takes_ctrl_c_for_one_stop(tmp_path: Path) -> None:
    """A second stop would kill all hooks, and the exit code would be 1."""
    zombies, file = tmp_path / "zombies", tmp_path / "c.yaml"
    counted = "cat /proc/[0-9]*/stat | grep -c ') Z '"
    check = (
        "trap 'sleep 0.3' TERM; setsid sleep 0.05 & sleep 0.3; "
        f"until n=$({counted}); [ $n = 0 ]; do sleep 0.1; done; echo $n >> {zombies}; sleep 2"
    )
    file.write_text(
        f"consul: {{address: 'http://127.0.0.1:1'}}\nstate_dir: {tmp_path}/state\n"
        f"control_socket: {tmp_path}/socket\n"
        f'elections: {{app: {{candidate_check: {{shell: "{check}", interval: 1s}}}}}}\n'
    )
    with Terminal("run", str(file), program=(*CONTAINER, *COMMAND)) as container:
        until(lambda: zombies.exists() and len(zombies.read_text()) >= 4, "two checks have ended")
        container.type(b"\x03")
        assert container.ended() == 0, container.text
    assert zombies.read_text().split()[:2] == ["0", "0"]
