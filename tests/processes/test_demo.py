"""`demo`: it shows the whole story, and leaves nothing behind even if it is interrupted."""

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.captured import captured
from tests.support.supervisor import PATIENCE_S, left_behind, until

pytestmark = pytest.mark.long

COMMAND = [sys.executable, "-m", "supervisor", "demo"]
CHAPTERS = (
    "An election",
    "A crash",
    "comes back, and waits",
    "A planned stop",
    "The end of the election",
    "A semaphore",
    "has rebuilt",
    "The end\n",
)

# Write files as a hook that outlives its supervisor: until the folder is removed, and a moment longer.
REFILL = """
while [ -e "$1/node-a.yaml" ]; do : >"$1/late"; done
for round in $(seq 5000); do : >"$1/late" || exit; done 2>/dev/null
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return the parent of the demo's folder, with a name that a shell must quote."""
    made = tmp_path / "a folder's"
    made.mkdir()
    return made


def environment(folder: Path) -> dict[str, str]:
    return {**os.environ, "TMPDIR": str(folder)}


def test_the_demo_shows_an_election_and_a_semaphore_and_leaves_nothing(folder: Path) -> None:
    """All checks share one run, because it takes ten seconds."""
    done = captured(COMMAND, env=environment(folder), timeout=2 * PATIENCE_S)
    assert (done.returncode, done.stderr) == (0, ""), done.stdout
    assert left_behind(folder) == []
    places = [done.stdout.index(chapter) for chapter in CHAPTERS]
    assert places == sorted(places)
    assert "\x1b" not in done.stdout
    assert_all_is_told(done.stdout)
    assert_the_key_stays_free_for_the_lock_delay(done.stdout)
    assert_the_third_gets_the_slot_that_is_given_back(done.stdout)


def assert_all_is_told(said: str) -> None:
    election, semaphore = said.split("A semaphore")
    assert election.count("on_acquire") == semaphore.count("on_acquire") == 3
    assert election.count("on_lose") == 3  # the crashed node when it is back, and two stops
    assert semaphore.count("on_lose") == 3
    assert "webhook" in election
    tokens = [int(token) for token in re.findall(r"fencing token (\d+)", said)]
    assert tokens == sorted(set(tokens))


def assert_the_key_stays_free_for_the_lock_delay(said: str) -> None:
    """Check by the demo's times that the next leader comes 2 x ttl + lock_delay after the crash."""
    crash = said.partition("A crash")[2].partition("comes back")[0]
    freed_s, leads_s = (
        float(re.search(rf"([\d.]+) s .*{what}", crash)[1])  # type: ignore[index]
        for what in ("nobody leads", "I lead")
    )
    assert leads_s - freed_s > 3.9


def assert_the_third_gets_the_slot_that_is_given_back(said: str) -> None:
    semaphore = said.partition("A semaphore")[2]
    began, _, left = semaphore.partition("has rebuilt")
    told = re.findall(r"(node-[abc]) +(on_acquire|on_lose)", semaphore)
    holders = [name for name, event in told[:2] if event == "on_acquire"]
    (waiter,) = {"node-a", "node-b", "node-c"} - set(holders)
    assert f"{waiter}    waits: both slots are taken" in began
    assert told[2][0] in holders and told[2][1] == "on_lose"
    assert told[3] == (waiter, "on_acquire")
    assert f"{waiter} and" in left or f"and {waiter}" in left


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_demo_leaves_nothing(folder: Path, number: signal.Signals) -> None:
    with subprocess.Popen(COMMAND, env=environment(folder), stdout=subprocess.PIPE, text=True) as demo:
        assert demo.stdout is not None
        assert any("I lead" in line for line in demo.stdout)
        demo.send_signal(number)
        assert demo.wait(PATIENCE_S) == 130
    until(lambda: not left_behind(folder), f"the demo leaves nothing: {left_behind(folder)}")


def test_an_interrupted_demo_removes_its_folder_while_a_late_hook_writes_there(folder: Path) -> None:
    with subprocess.Popen(COMMAND, env=environment(folder), stdout=subprocess.PIPE, text=True) as demo:
        assert demo.stdout is not None
        assert any("I lead" in line for line in demo.stdout)
        (made,) = folder.iterdir()
        with subprocess.Popen(["sh", "-c", REFILL, "sh", made]):
            until(lambda: (made / "late").exists(), "the late hook writes")
            demo.send_signal(signal.SIGINT)
            assert demo.wait(PATIENCE_S) == 130
    assert left_behind(folder) == []
