"""``candidate_check: {disk: PATH}`` on a disk that freezes: a leader hands over, and no check piles up."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from supervisor.adapters.hooks.unkillable import UNKILLABLE_MAX
from tests.consul.elections.scene import LASTING, Scene
from tests.support.hung import frozen, local_disk, needs_root
from tests.support.supervisor import processes_of, until

pytestmark = [needs_root, pytest.mark.long]


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """Mount a local disk of its own."""
    folder = tmp_path / "disk"
    folder.mkdir()
    with local_disk(folder):
        yield folder


def checks_of(disk: Path) -> int:
    """Return how many checks of this disk there are."""
    return sum(str(disk) == process.cmdline()[-1] for process in processes_of(str(disk)))


def test_a_leader_whose_disk_freezes_hands_over_and_contends_again_when_it_thaws(
    scene: Scene, disk: Path
) -> None:
    check = {"disk": str(disk), "interval": "1s", "timeout": "500ms", "kill_after": "0s", "fall": 3}
    writes = scene.run("a", f'while date >"{disk}/now"; do sleep 0.1; done')
    scene.lasting()
    a = scene.leader("a", candidate_check=check, run=writes)
    b = scene.waiter("b")
    with frozen(disk):
        assert scene.wait_leader(but="a") == "b"
        assert a.wait_line("check-failed")["why"].startswith("timed out after 0.5s")
        a.wait_line("hook-output", text=f"{disk} has not answered a write and a sync")
        assert scene.calls("a") == ["acquire acquired"] * 2 + ["lose unhealthy"]
        a.wait_line("role", role="ineligible")
        until(lambda: checks_of(disk) == UNKILLABLE_MAX, "no further check begins")
        until(lambda: "KILL has not ended" in a.log_text, "the log says why")
        assert checks_of(disk) == UNKILLABLE_MAX
        assert not a.lines("event-loop-stalled")
    until(lambda: checks_of(disk) == 0, "each killed check has ended")
    a.wait_line("check-recovered")
    assert b.stop() == 0
    assert scene.wait_leader() == "a"
    assert a.stop() == 0
    assert {path.name for path in disk.iterdir()} == {"lost+found", "now"}


def test_an_on_lose_that_fails_while_a_process_is_left_ends_in_on_lose_failure(
    scene: Scene, disk: Path
) -> None:
    """The run child waits for the disk, and KILL does not end it: docs/hooks.md, for shared storage."""
    quick = {"interval": "1s", "timeout": "500ms", "kill_after": "0s", "rise": 1, "fall": 1}
    writes = scene.run("a", f'while date >"{disk}/now"; do sleep 0.1; done')
    none_left = scene.hook("a", "lose", f'! pgrep -f "{disk}/[n]ow"')
    last = [scene.hook("a", "lose-failure")]
    scene.terms = {**LASTING, "lock_delay": "15s"}
    how = {"run": writes, "on_lose": [none_left], "on_lose_failure": last}
    a = scene.leader("a", candidate_check={"disk": str(disk), **quick}, **how)
    with frozen(disk):
        scene.wait(node="a", event="lose-failure", stage="end")
    until(lambda: len(a.lines("role", role="holding")) == 2, "it leads again")
    assert a.stop() == 0
    assert scene.calls("a")[-1] == "lose shutdown"
