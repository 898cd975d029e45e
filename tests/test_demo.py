"""`demo` tells the whole story and leaves nothing behind, also when it is interrupted."""

import os
import pty
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

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


def environment(folder: Path) -> dict[str, str]:
    return {**os.environ, "TMPDIR": str(folder)}


def left_behind(folder: Path) -> list[str]:
    """Files of the demo, and processes that speak of its folder."""
    processes = []
    for process in psutil.process_iter():
        try:
            processes.append(" ".join(process.cmdline()))
        except psutil.Error:
            continue
    return [*map(str, folder.iterdir()), *(line for line in processes if str(folder) in line)]


@pytest.mark.long
def test_it_shows_an_election_a_failover_and_a_hand_over_and_leaves_nothing(tmp_path: Path) -> None:
    done = subprocess.run(COMMAND, env=environment(tmp_path), capture_output=True, text=True, timeout=90)
    assert (done.returncode, done.stderr) == (0, "")
    places = [done.stdout.index(chapter) for chapter in CHAPTERS]
    assert places == sorted(places)
    election, semaphore = done.stdout.split("A semaphore")
    assert election.count("on_acquire") == semaphore.count("on_acquire") == 3
    assert election.count("on_lose") == 3  # the crashed one, when it comes back; two stops
    assert semaphore.count("on_lose") == 3
    assert "webhook" in election
    tokens = [int(token) for token in re.findall(r"fencing token (\d+)", done.stdout)]
    assert tokens == sorted(set(tokens))
    assert "\x1b" not in done.stdout
    assert left_behind(tmp_path) == []


@pytest.mark.long
def test_the_key_stays_free_for_the_lock_delay_after_the_crash(tmp_path: Path) -> None:
    """By the demo's own times: the next leader is there after 2 x ttl + lock_delay, not before."""
    done = subprocess.run(COMMAND, env=environment(tmp_path), capture_output=True, text=True, timeout=90)
    crash = done.stdout.partition("A crash")[2].partition("comes back")[0]
    freed_s, leads_s = (
        float(re.search(rf"([\d.]+) s .*{what}", crash)[1])  # type: ignore[index]
        for what in ("nobody leads", "I lead")
    )
    assert leads_s - freed_s > 3.9


@pytest.mark.long
def test_two_of_three_have_a_slot_and_the_third_gets_the_one_that_is_given_back(tmp_path: Path) -> None:
    done = subprocess.run(COMMAND, env=environment(tmp_path), capture_output=True, text=True, timeout=90)
    assert done.returncode == 0, done.stdout + done.stderr
    semaphore = done.stdout.partition("A semaphore")[2]
    began, _, left = semaphore.partition("has rebuilt")
    told = re.findall(r"(node-[abc]) +(on_acquire|on_lose)", semaphore)
    holders = [name for name, event in told[:2] if event == "on_acquire"]
    (waiter,) = {"node-a", "node-b", "node-c"} - set(holders)
    assert f"{waiter}    waits: both slots are taken" in began
    assert told[2][0] in holders and told[2][1] == "on_lose"
    assert told[3] == (waiter, "on_acquire")
    assert f"{waiter} and" in left or f"and {waiter}" in left


@pytest.mark.long
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_demo_leaves_nothing(tmp_path: Path, number: signal.Signals) -> None:
    with subprocess.Popen(COMMAND, env=environment(tmp_path), stdout=subprocess.PIPE, text=True) as demo:
        assert demo.stdout is not None
        for line in demo.stdout:
            if "I lead" in line:
                break
        demo.send_signal(number)
        assert demo.wait(timeout=30) == 130
    deadline = time.monotonic() + 10
    while left_behind(tmp_path) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert left_behind(tmp_path) == []


@pytest.mark.long
def test_it_is_coloured_on_a_terminal(tmp_path: Path) -> None:
    ours, theirs = pty.openpty()
    with subprocess.Popen(COMMAND, env=environment(tmp_path), stdout=theirs, stderr=theirs) as demo:
        os.close(theirs)
        said = b""
        while b"I lead" not in said:
            said += os.read(ours, 4096)
        demo.send_signal(signal.SIGINT)
        demo.wait(timeout=30)
    os.close(ours)
    assert b"\x1b[1;32m" in said
