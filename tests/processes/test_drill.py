"""`drill`: it keeps the promises of a good file, finds a bad one, and leaves nothing behind."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest

from supervisor.rehearsal.drill.promises import TOO_BUSY
from supervisor.rehearsal.drill.rehearsal import NOT_HELD
from tests.support.captured import captured
from tests.support.examples import CONFIGURATIONS, VARIABLES
from tests.support.supervisor import PATIENCE_S, command, left_behind, until

COMMAND = [sys.executable, "-m", "supervisor", "drill"]
FAST = ["--speed", "1000"]
WITHIN_S = 600.0  # a drill prints its own bound; this one only ends a test that hangs
OBSERVER = "elections: {app: {contend: false, on_change: [{exec: [/nonexistent]}]}}"
SECRET = "Tr0ub4dor"
WITH_SECRETS = f"""
consul: {{address: "https://consul.invalid:8501", token: {SECRET}, tls: {{ca_file: /nonexistent/ca.pem}}}}
state_dir: /nonexistent/state
control_socket: /nonexistent/control.sock
control_group: nonexistent
http: {{listen: "192.0.2.1:80"}}
elections:
  app:
    on_acquire: [{{exec: [/nonexistent], env: {{PASSWORD: {SECRET}}}, user: nobody, cwd: /nonexistent}}]
    on_lose: [{{webhook: "https://hooks.invalid/{SECRET}"}}]
"""
RARE = {
    "no TTL, retries": """
elections:
  app:
    session: {ttl: none, lock_delay: 45s}
    acquire_delay: 3s
    acquire_failure: keep
    on_adopt: acquire
    on_acquire: [{shell: a, retries: 2}]
    on_lose: [{shell: b, retries: 1}]
""",
    "accept_overlap": """
elections:
  app:
    session: {ttl: 10s, lock_delay: 5s}
    accept_overlap: true
    on_lose: [{shell: b, timeout: 20s}]
""",
    "semaphore without TTL": """
semaphores:
  app:
    limit: 1
    prune_delay: 20s
    session: {ttl: none}
    run: {exec: [a]}
""",
    "fence": """
elections:
  app:
    fence: {exec: [/nonexistent], target: db1}
    on_acquire: [{shell: a}]
    on_lose: [{shell: b}]
""",
    "fence that is required, of an exclusive key, with an outage": """
elections:
  app: {fence: {webhook: "http://127.0.0.1:1/shoot", exclusive: true, required: true, outage: 1m}}
""",
    "fence without TTL": """
elections:
  app:
    session: {ttl: none}
    fence: {shell: shoot, exclusive: true}
    run: {exec: [a]}
""",
}
ALIKE = {"alertmanager", "minimal", "pagerduty", "slack"}  # as others, but for a webhook of on_change
DRILLED = [path for path in CONFIGURATIONS if path.stem not in ALIKE]
TOO_SLOW = """
elections:
  app:
    on_acquire: [{exec: ["true"], timeout: 1s}]
    on_lose: [{name: stop, shell: sleep 9, timeout: 1s, kill_after: 100ms}]
"""
NEVER_FIT = """
elections:
  app:
    candidate_check: {exec: ["false"], interval: 1s, timeout: 1s}
    on_lose: [{exec: ["true"], timeout: 1s}]
"""


@pytest.fixture
def folder() -> Iterator[Path]:
    """Return the parent of the drill's folders, short for sockets, with a name that a shell must quote."""
    with TemporaryDirectory(prefix="it's-") as made:
        yield Path(made)


def environment(folder: Path) -> dict[str, str]:
    return {**os.environ, **VARIABLES, "TMPDIR": str(folder)}


def drill(folder: Path, *arguments: str | Path, **environ: str) -> subprocess.CompletedProcess[str]:
    return captured([*COMMAND, *map(str, arguments)], env=environment(folder) | environ, timeout=WITHIN_S)


def written(folder: Path, text: str) -> Path:
    file = folder / "c.yaml"
    file.write_text(text)
    return file


def broken(document: dict[str, Any]) -> dict[str, list[str]]:
    """Return the broken promises of each play of the first item."""
    return {
        play["play"]: [one["what"] for one in play["promises"] if not one["kept"]]
        for play in document["items"][0]["plays"]
        if not play["kept"]
    }


@pytest.mark.long
def test_an_observer_is_drilled_without_consul_and_leaves_nothing(folder: Path, tmp_path: Path) -> None:
    done = drill(folder, written(tmp_path, OBSERVER), "--json")
    assert done.returncode == 0, done.stderr
    document = json.loads(done.stdout)
    assert document["kept"] and document["items"][0]["plays"][0]["play"] == "observe"
    assert "app: 1 of 1, an observer looks on" in done.stderr and "at most" in done.stderr
    assert left_behind(folder) == []


def test_what_cannot_be_drilled_is_refused(tmp_path: Path) -> None:
    """A name that the file lacks, a bad file, and what is no number from 1."""
    file = str(written(tmp_path, OBSERVER))
    done = command("drill", file, "ap")
    assert (done.returncode, done.stdout) == (2, "")
    assert f"cannot find election or semaphore ap in {file}: it has app, did you mean app?\n" in done.stderr
    for speed in ("0", "fast", "99999"):
        assert command("drill", file, "--speed", speed).returncode == 2
    written(tmp_path, "elections: {app: {keey: a}}")
    done = command("drill", file)
    assert (done.returncode, done.stdout) == (78, "")


@pytest.mark.long
@pytest.mark.parametrize("path", DRILLED, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_each_example_keeps_its_promises(path: Path, folder: Path) -> None:
    done = drill(folder, path, *FAST)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.endswith("all kept\n") and "BROKEN" not in done.stdout
    assert left_behind(folder) == []


@pytest.mark.long
@pytest.mark.parametrize("text", RARE.values(), ids=RARE)
def test_rare_settings_keep_their_promises(text: str, folder: Path, tmp_path: Path) -> None:
    done = drill(folder, written(tmp_path, text), *FAST)
    assert done.returncode == 0, done.stdout + done.stderr
    assert left_behind(folder) == []


def slow(tmp_path: Path, script: str) -> dict[str, str]:
    """Return variables by which each supervisor of a drill starts behind this script."""
    (tmp_path / "setpriv").write_text(f'#!/bin/sh\n{script}\nexec /usr/bin/setpriv "$@"\n')
    (tmp_path / "setpriv").chmod(0o755)
    return {"PATH": f"{tmp_path}:{os.environ['PATH']}"}


@pytest.mark.long
def test_supervisors_that_start_slowly_break_no_promise(folder: Path, tmp_path: Path) -> None:
    """The first three; the other starts are as quick as ever."""
    counted = f"echo >>{tmp_path}/starts; [ $(wc -l <{tmp_path}/starts) -gt 3 ] || sleep 17"
    done = drill(folder, written(tmp_path, RARE["fence"]), *FAST, **slow(tmp_path, counted))
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.long
def test_a_machine_on_which_no_supervisor_starts_says_nothing_about_the_file(
    folder: Path, tmp_path: Path
) -> None:
    done = drill(folder, written(tmp_path, RARE["fence"]), *FAST, **slow(tmp_path, "exec sleep 600"))
    assert done.returncode == 1, done.stderr
    assert done.stdout.count(f": not played, {TOO_BUSY}\n") == 12
    assert done.stdout.endswith("\n0 promises: not every play was played\n") and NOT_HELD not in done.stdout
    assert left_behind(folder) == []


@pytest.mark.long
def test_a_drill_uses_no_place_of_the_file_and_prints_no_secret(folder: Path, tmp_path: Path) -> None:
    done = drill(folder, written(tmp_path, WITH_SECRETS), *FAST)
    assert done.returncode == 0, done.stdout + done.stderr
    assert SECRET not in done.stdout + done.stderr


@pytest.mark.long
def test_an_on_lose_that_is_slower_than_its_timeout_fails(folder: Path, tmp_path: Path) -> None:
    file = written(tmp_path, TOO_SLOW)
    done = drill(folder, file, "--hooks", "real", "--json", *FAST)
    assert done.returncode == 1, done.stderr
    found = broken(json.loads(done.stdout))
    for play in ("stop", "step-down", "silence", "destroy"):
        assert "on_lose succeeds" in found[play]
    # A busy machine returns too late from the crash before, and is stuck then.
    assert {"on_lose succeeds", "nodes that hold, and that wait"} & set(found["crash"])
    assert not {"start", "crash-and-return"} & found.keys()
    assert all("holders at once" not in each for each in found.values())
    assert left_behind(folder) == []


@pytest.mark.long
def test_a_candidate_check_that_never_passes_fails(folder: Path, tmp_path: Path) -> None:
    done = drill(folder, written(tmp_path, NEVER_FIT), "--hooks", "real", *FAST)
    assert done.returncode == 1, done.stderr
    assert "candidate_check of node-a: exit 1" in done.stdout
    assert "planned stop of the holder: not played, no node held the lock" in done.stdout
    assert left_behind(folder) == []


@pytest.mark.long
@pytest.mark.parametrize(
    ("number", "play"), [(signal.SIGINT, "2 of 9"), (signal.SIGTERM, "5 of 9"), (signal.SIGQUIT, "5 of 9")]
)
def test_an_interrupted_drill_leaves_nothing(
    folder: Path, tmp_path: Path, number: signal.Signals, play: str
) -> None:
    """In the fifth play a supervisor has crashed."""
    file = written(tmp_path, "elections: {app: {run: {exec: [a]}, on_lose: [{exec: [a]}]}}")
    argv = [*COMMAND, str(file), *FAST]
    with subprocess.Popen(argv, env=environment(folder), stderr=subprocess.PIPE, text=True) as running:
        assert running.stderr is not None
        assert any(play in line for line in running.stderr)
        running.send_signal(number)
        assert running.wait(PATIENCE_S) == 130
    until(lambda: not left_behind(folder), f"the drill leaves nothing: {left_behind(folder)}")


@pytest.mark.long
def test_a_real_fence_never_runs_and_each_way_that_it_ends_is_played(folder: Path, tmp_path: Path) -> None:
    shot = tmp_path / "shot"
    text = f"elections: {{app: {{on_acquire: [{{exec: ['true']}}], fence: {{exec: [touch, {shot}]}}}}}}"
    done = drill(folder, written(tmp_path, text), "--hooks", "real", "--json", *FAST)
    assert done.returncode == 0, done.stdout + done.stderr
    assert not shot.exists()
    (item,) = json.loads(done.stdout)["items"]
    kept = {
        play["play"]: {one["what"]: one["measured"] for one in play["promises"]} for play in item["plays"]
    }
    assert kept["lost-fenced"]["fence succeeds"] == "yes"
    assert kept["destroy"]["fence leaves the holder alone, which lives"] == "yes"
    ends = {
        play["play"]: {
            line["text"].removeprefix("fence: ") for line in play["events"] if "fence: " in line["text"]
        }
        for play in item["plays"]
        if play["play"].startswith("lost")
    }
    assert "exit 0" in ends["lost-fenced"]
    assert "exit 1" in ends["lost-fence-fails"] and "exit 0" not in ends["lost-fence-fails"]
    assert ends["lost-fence-hangs"] == {"ended by a signal"}
    for play in ("lost-fence-fails", "lost-fence-hangs"):
        assert any(what.startswith("it does not act before the lease is over") for what in kept[play])
