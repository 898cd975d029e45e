"""The process itself: one thread, bounded resources, and an end in every case."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest

from tests.support.consul import Agent
from tests.support.programs import BUGGY_DAEMON, run_program
from tests.support.supervisor import COMMAND, PATIENCE_S, Supervisor, command, until

BUG = 70
ELECTIONS = 20
STANDARD_SIGNALS = (1 << 31) - 1  # the C library's own signals, 32 and 33, cannot be set


@pytest.fixture
def node(shared_agent: Agent, unique: str, tmp_path: Path) -> Iterator[Supervisor]:
    """Return a process with many elections, each with hooks of every kind."""
    election = {
        "session": {"ttl": "10s", "lock_delay": "20s", "name": unique},
        "on_acquire": [{"shell": ":"}],
        "on_lose": [{"shell": ":"}],
        "on_change": [{"shell": ":"}, {"webhook": "http://127.0.0.1:1/"}],
    }
    elections = {f"e{n}": {**election, "key": f"{unique}/{n}"} for n in range(ELECTIONS)}
    config = {"consul": {"address": shared_agent.url}, "log": {"format": "json"}, "elections": elections}
    running = Supervisor(tmp_path / "node", config)
    with running:
        yield running


def holding(node: Supervisor) -> int:
    assert node.running, node.log_tail()
    return len(node.lines("role", role="holding"))


def test_descriptors_and_processes_do_not_grow_with_changes(
    node: Supervisor, shared_agent: Agent, unique: str
) -> None:
    """A hundred changes leave their numbers as they were, but for connections that are kept."""
    until(lambda: holding(node) == ELECTIONS, "all lead")
    process = psutil.Process(node.pid)

    def descriptors() -> int:
        return process.num_fds() - len(process.net_connections())

    until(lambda: not process.children(), "the first hooks are over")
    before = descriptors()
    assert process.num_threads() == 1
    for number in range(5):
        for election in range(ELECTIONS):
            shared_agent.kv_put(f"{unique}/{election}", b"%d" % number)
    until(lambda: len(node.lines("hook-started", reason="value-changed")) >= ELECTIONS, "they are told")
    until(lambda: not process.children() and descriptors() <= before, f"{before} descriptors again")
    assert holding(node) == ELECTIONS
    assert node.stop() == 0
    assert len(node.lines("role", role="stopped")) == ELECTIONS
    assert not [one for one in shared_agent.sessions() if one["Name"] == unique]
    node.assert_no_fault()


DEAF = """
import os, signal, sys
for number in (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGTERM, signal.SIGCHLD, signal.SIGUSR1):
    signal.signal(number, signal.SIG_IGN)
signal.pthread_sigmask(signal.SIG_BLOCK, (signal.SIGHUP, signal.SIGTERM, signal.SIGALRM))
os.execv(sys.argv[1], sys.argv[1:])
"""


class StartedDeaf(Supervisor):
    """A supervisor whose parent ignores and blocks signals: nohup, or a shell script's background."""

    def by_way_of(self) -> list[str]:
        return [sys.executable, "-c", DEAF, "/usr/bin/env"]


@pytest.mark.parametrize("stop", [signal.SIGTERM, signal.SIGINT])
def test_signals_that_our_parent_ignored_reach_the_daemon_its_hooks_and_run(
    shared_agent: Agent, unique: str, tmp_path: Path, stop: signal.Signals
) -> None:
    shown = "grep -E 'Sig(Ign|Blk)' /proc/self/status"
    app = {
        "key": unique,
        "session": {"ttl": "2s", "lock_delay": "15s"},
        "on_acquire": [
            {"shell": f"{shown} >'{tmp_path}/hook'"},
            {"shell": f"{shown} >'{tmp_path}/in-folder'", "cwd": "/"},
        ],
        "run": {"shell": f"cd '{tmp_path}' && {shown} >run.new; mv run.new run; sleep 60"},
    }
    config = {"consul": {"address": shared_agent.url}, "log": {"format": "json"}, "elections": {"app": app}}
    node = StartedDeaf(tmp_path / "node", config)
    with node:
        until(lambda: (tmp_path / "run").exists() or not node.running, "it runs")
        assert node.running, node.log_tail()
        for file in ("hook", "in-folder", "run"):
            sets = [int(line.split()[1], 16) for line in (tmp_path / file).read_text().splitlines()]
            assert [each & STANDARD_SIGNALS for each in sets] == [0, 0], file
        node.signal(signal.SIGHUP)
        node.wait_line("reloaded")
        node.signal(stop)
        assert node.wait() == 0
    node.assert_no_fault()


def test_a_bug_of_ours_is_logged_with_its_trace_and_ends_the_process_with_70(tmp_path: Path) -> None:
    """A daemon that goes on in part could hold a lock and receive no event."""
    file = tmp_path / "c.yaml"
    places = f"state_dir: {tmp_path}/state\ncontrol_socket: {tmp_path}/control.sock\n"
    file.write_text(f"consul: {{address: 'http://127.0.0.1:1'}}\n{places}elections: {{app: {{}}}}\n")
    done = run_program(BUGGY_DAEMON.format(words="'a bug of ours'"), str(file))
    assert done.returncode == BUG
    assert '"event": "bug"' in done.stderr and "ValueError: a bug of ours" in done.stderr


def write_file(folder: Path, consul: str, key: str, **hooks: str) -> Path:
    """Write a file with one election whose hooks run this shell script."""
    lines = [
        f"    {name}: [{{shell: {shell!r}, timeout: 2s, kill_after: 100ms}}]\n"
        for name, shell in hooks.items()
    ]
    file = folder / "config.yaml"
    file.write_text(f"""
consul: {{{consul}}}
state_dir: {folder}/state
control_socket: {folder}/control.sock
elections:
  app:
    key: {key}
    session: {{ttl: 2s, lock_delay: 9s}}
{"".join(lines)}""")
    return file


@contextmanager
def runs(file: Path, stderr: int = subprocess.DEVNULL, **environ: str) -> Iterator[None]:
    """Run a process with this file, and stop it in order at the end."""
    with subprocess.Popen([*COMMAND, "run", str(file)], stderr=stderr, env=os.environ | environ) as daemon:
        yield
        daemon.send_signal(signal.SIGTERM)
        assert daemon.wait(timeout=PATIENCE_S) == 0


def test_a_command_finds_a_socket_that_only_the_file_of_the_daemon_names(
    shared_agent: Agent, unique: str, folder: Path
) -> None:
    run = str(folder / "run")
    here = {"RUNTIME_DIRECTORY": run}
    with runs(write_file(folder, f'address: "{shared_agent.url}"', unique), RUNTIME_DIRECTORY=run):
        until(lambda: command("status", environ=here).returncode == 0, "the daemon answers")
        assert command("reload", environ=here).stdout == "nothing has changed\n"
    assert command("status", environ=here).returncode == 69 and not (folder / "run/control.sock").is_symlink()


@pytest.mark.long
def test_a_log_that_nobody_reads_delays_neither_renewals_nor_on_lose(
    shared_agent: Agent, unique: str, tmp_path: Path
) -> None:
    """Far more than a pipe holds is logged while this node leads, and then the node stops in order."""
    chatter = f"seq -f %0400.0f 900; echo >{tmp_path}/acquired"
    consul = f'address: "{shared_agent.url}"'
    file = write_file(tmp_path, consul, unique, on_acquire=chatter, on_lose=f"echo >{tmp_path}/lost")
    reader, writer = os.pipe()
    with runs(file, stderr=writer):
        os.close(writer)
        until(lambda: (tmp_path / "acquired").exists(), "on_acquire is done")
        holder = shared_agent.kv_get(unique)
        time.sleep(5)  # longer than the session lives without renewals
        assert holder and shared_agent.kv_get(unique) == holder
    assert (tmp_path / "lost").exists()
    os.close(reader)


@pytest.mark.long
def test_a_variable_that_a_former_file_withheld_is_not_inherited_after_a_reload(
    shared_agent: Agent, unique: str, tmp_path: Path
) -> None:
    """Hooks of the former file do not get it, and they do not get a variable that the new file withholds."""
    told = tmp_path / "told"

    def written(variable: str) -> Path:
        consul = f'address: "{shared_agent.url}", token: "${{{variable}}}"'
        return write_file(tmp_path, consul, unique, on_lose=f"env >>{told}")

    with runs(written("FIRST"), FIRST="7b0f0e2c-first", SECOND="7b0f0e2c-second", OTHER="x"):
        until(lambda: is_held(shared_agent, unique), "it holds")
        written("SECOND")
        asked = [*COMMAND, "reload", "--socket", str(tmp_path / "control.sock")]
        subprocess.run(asked, check=True, capture_output=True, timeout=PATIENCE_S)
        (journal,) = (tmp_path / "state").glob("*.journal")
        until(lambda: b"SECOND" in journal.read_bytes(), "the record says so")
    assert "OTHER=x" in told.read_text() and "7b0f0e2c" not in told.read_text()


def is_held(agent: Agent, key: str) -> bool:
    entry = agent.kv_get(key)
    return entry is not None and "Session" in entry
