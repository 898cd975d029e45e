"""The command of ``lock`` runs as it would without a lock: exit codes, signals, streams, environment."""

import os
import signal
from pathlib import Path

import pytest

from supervisor.commands.lock_command.waiting import NAME
from tests.consul.locks.lockers import SHORT, SLEEP, Lockers, children, is_alive
from tests.support.captured import captured
from tests.support.supervisor import COMMAND, ENVIRON, PATIENCE_S, ROOT, command, until
from tests.support.turns import first_now


@pytest.mark.parametrize(
    ("body", "code"),
    first_now(
        [("exit 7", 7), ("exit 0", 0), ("exit 255", 255), ("kill -TERM $$", 143), ("kill -KILL $$", 137)]
    ),
)
def test_the_exit_code_of_the_command_is_passed_on(lockers: Lockers, body: str, code: int) -> None:
    assert done(lockers, "--", "sh", "-c", body) == (code, "", "")
    assert lockers.session() == "" and lockers.is_waiting(0)


def test_a_program_that_cannot_run_is_reported_before_anything_is_locked(tmp_path: Path) -> None:
    script = tmp_path / "script"
    script.write_bytes(b"#!/bin/sh\r\n")
    script.chmod(0o755)
    for program, code, why in (
        ("no-such-program", 127, "there is no such program\n"),
        ("a && b", 127, "there is no such program; no shell reads it: write -- sh -c 'a && b'\n"),
        ("/no/such/program", 127, "there is no such program\n"),
        ("/etc/passwd", 126, "it is not executable\n"),
        (str(script), 126, rf"it is run by /bin/sh\r, which does not exist: sed -i 's/\r$//' {script}"),
    ):
        ran = command("lock", "key", "--", program, environ={"CONSUL_HTTP_ADDR": "127.0.0.1:1"})
        assert (ran.returncode, ran.stdout) == (code, "")
        assert ran.stderr.startswith(f"consul-supervisor: cannot run {program}: ") and why in ran.stderr


def test_too_few_open_files_are_no_bug(lockers: Lockers) -> None:
    """Nothing can be opened: not even the list of what is open."""
    argv = ["/bin/sh", "-c", 'ulimit -n 8; exec "$@"', "sh", *COMMAND, "lock", lockers.key, "--", "true"]
    ran = captured(argv, cwd=ROOT, env=dict(ENVIRON), timeout=PATIENCE_S)
    assert ran.returncode == 78 and "Traceback" not in ran.stderr
    assert "too many open files: raise ulimit -n, or LimitNOFILE=" in ran.stderr


def test_too_few_open_files_do_not_keep_systemd_from_another_start(tmp_path: Path) -> None:
    (tmp_path / "c.yaml").write_text("elections: {app: {}}")
    argv = ["/bin/sh", "-c", 'ulimit -n 12; exec "$@"', "sh", *COMMAND, "run", str(tmp_path / "c.yaml")]
    assert captured(argv, cwd=ROOT, env=dict(ENVIRON), timeout=PATIENCE_S).returncode == 1


def test_the_standard_streams_are_those_of_lock(lockers: Lockers) -> None:
    piped = ["sh", "-c", 'printf "some text" | "$@"', "sh"]
    locker = lockers.start(before=piped, argv=["/bin/sh", "-c", "tr a-z A-Z; echo problem >&2"])
    assert locker.end() == (0, "SOME TEXT", "problem\n")


def done(lockers: Lockers, *words: str, **environ: str) -> tuple[int, str, str]:
    """Run ``lock`` on the key of the test, and return exit code, standard output and standard error."""
    ran = command("lock", lockers.key, *words, environ={"CONSUL_HTTP_ADDR": lockers.agent.url, **environ})
    return ran.returncode, ran.stdout, ran.stderr


def test_the_arguments_of_the_command_are_its_own(lockers: Lockers) -> None:
    """An option of ``lock`` and another ``--`` behind the first belong to the command."""
    words = ("--wait", "30s", "--", "printf", "%s|", "--verbose", "--", "--wait", "-n")
    assert done(lockers, *words) == (0, "--verbose|--|--wait|-n|", "")


def test_without_a_key_or_a_command_nothing_runs() -> None:
    for words in ("lock a", "lock a --", "lock a true", "lock -- true"):
        ran = command(*words.split())
        assert ran.returncode == 2 and ran.stderr.startswith("usage: consul-supervisor lock")


def test_the_environment_is_passed_on_with_the_facts_of_the_lock_whose_sequencer_verifies(
    lockers: Lockers,
) -> None:
    ours = "$CONSUL_SUPERVISOR_KEY $CONSUL_SUPERVISOR_FENCING_TOKEN"
    verify = f"{' '.join(COMMAND)} verify --key {lockers.key} --session $CONSUL_SUPERVISOR_SESSION"
    script = f'echo "$SOME $NOTIFY_SOCKET $CONSUL_LOCK_HELD {ours}" && {verify}'
    environ = {"CONSUL_HTTP_TOKEN": "", "SOME": "thing", "NOTIFY_SOCKET": "/x"}
    code, out, error = done(lockers, "--", "sh", "-c", script, **environ)
    some, notify, held, key, token = out.split()
    assert (code, some, notify, held, key) == (0, "thing", "/x", "true", lockers.key), error
    assert int(token) > 0 and error == ""


def test_verbose_explains_each_step(lockers: Lockers) -> None:
    """Options may stand behind the key."""
    code, _, error = done(lockers, "--verbose", "--", "true")
    first, second, *others = [line.removeprefix("consul-supervisor: ") for line in error.splitlines()]
    assert (code, first) == (0, f"waiting for {lockers.key}")
    assert second.startswith(f"holding {lockers.key} with session ")
    assert others == ["the command has ended: exit 0", f"released {lockers.key}"]


# --- signals ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("number", first_now([signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGUSR1]))
def test_a_signal_is_passed_on_to_the_command(lockers: Lockers, number: signal.Signals) -> None:
    """The command decides what the signal means, also that it goes on."""
    body = f"trap 'note {number.name}; exit 9' {number.name.removeprefix('SIG')}; {SLEEP}"
    locker = lockers.holder(body=body)
    lockers.wait_line("a", "begin")
    locker.signal(number)
    assert locker.end() == (9, "", "")
    assert lockers.lines("a", number.name)
    lockers.assert_nothing_left()


@pytest.mark.parametrize("number", first_now([signal.SIGTERM, signal.SIGINT, signal.SIGHUP]))
def test_a_signal_ends_a_command_that_is_stopped(lockers: Lockers, number: signal.Signals) -> None:
    """A stopped process acts on a signal only once it continues."""
    locker = lockers.holder(body="trap - TERM; kill -STOP $$")
    shell = lockers.wait_line("a", "begin").pid
    until(lambda: " T " in Path(f"/proc/{shell}/stat").read_text(), "the command is stopped")
    locker.signal(number)
    assert locker.end() == (128 + number, "", "")
    assert lockers.session() == ""


def test_a_signal_ends_the_wait_for_the_lock(lockers: Lockers) -> None:
    lockers.holder()
    waiter = lockers.start(name="b")
    until(lambda: lockers.is_waiting(2), "both have a session")
    waiter.signal(signal.SIGINT)
    assert waiter.end() == (130, "", "")
    assert lockers.lines("b") == [] and lockers.is_waiting(1)


def test_a_signal_that_our_parent_ignores_stays_ignored(lockers: Lockers) -> None:
    locker = lockers.start(before=["nohup"], argv=["/bin/sh", "-c", "kill -HUP $$; kill -HUP $PPID; exit 3"])
    assert locker.wait() == 3


# --- nothing acts without the lock ------------------------------------------------------------------------


def test_the_end_of_the_command_ends_what_it_has_left_running(lockers: Lockers) -> None:
    said = "consul-supervisor: the command ended, and what it left running was killed: sleep\n"
    assert lockers.start(body="sleep 600 & exit 0").end() == (0, "", said)
    lockers.assert_nothing_left()


def test_kill_takes_the_command_and_its_children_with_it(lockers: Lockers) -> None:
    """The kernel kills the shell, and the killer kills what the shell has started."""
    locker = lockers.holder(body="(trap '' TERM HUP; sleep 600) & sleep 600; true")
    shell = lockers.wait_line("a", "begin").pid
    until(lambda: len(children(shell)) == 2, "the children of the shell")
    locker.signal(signal.SIGKILL)
    assert locker.wait() == -signal.SIGKILL
    lockers.assert_nothing_left()
    assert lockers.session(), "Consul keeps the lock until the session expires"


@pytest.mark.parametrize("number", first_now(range(5)))
def test_kill_takes_a_command_with_it_that_has_only_begun(lockers: Lockers, number: int) -> None:
    """The command itself kills ``lock``, which has not run since the fork on a busy machine."""
    locker = lockers.start(argv=["/bin/sh", "-c", "sleep 600 & kill -KILL $PPID; sleep 600; true"])
    assert locker.wait() == -signal.SIGKILL
    lockers.assert_nothing_left()


@pytest.mark.parametrize("when", ["while it waits", "while it holds"])
def test_a_killer_that_was_killed_is_replaced(lockers: Lockers, when: str) -> None:
    other = lockers.holder(name="other")
    locker = lockers.start(body="sleep 600 & sleep 600; true")
    until(lambda: lockers.is_waiting(2), "it waits")
    if when == "while it holds":
        other.signal(signal.SIGTERM)
        lockers.wait_line("a", "begin")
    (killer,) = (pid for pid in children(locker.pid) if is_killer(pid))
    os.kill(killer, signal.SIGKILL)
    until(lambda: any(map(is_killer, set(children(locker.pid)) - {killer})), "another killer runs")
    if when == "while it waits":
        other.signal(signal.SIGTERM)
    shell = lockers.wait_line("a", "begin").pid
    until(lambda: len(children(shell)) == 2, "the children of the shell")
    locker.signal(signal.SIGKILL)
    lockers.assert_nothing_left()


def is_killer(pid: int) -> bool:
    return NAME.encode() in Path(f"/proc/{pid}/cmdline").read_bytes()


def test_the_killer_does_not_outlive_the_command(lockers: Lockers) -> None:
    locker = lockers.holder(body="sleep 0.3")
    pids = children(locker.pid)
    assert len(pids) == 2, "the command and its killer"
    assert locker.wait() == 0
    assert not any(is_alive(pid) for pid in pids)


# --- process 1 --------------------------------------------------------------------------------------------

CONTAINER = ("unshare", "--pid", "--fork", "--kill-child", "--mount-proc")


def test_process_1_reaps_orphans(lockers: Lockers) -> None:
    """The orphan is no process of the command's group, so its end is that of any process of a container."""
    count = "cat /proc/[0-9]*/stat | grep -c ') Z '"
    body = f"setsid sh -c '(setsid sleep 0.1 &) ; exit 0'; sleep 0.5; echo $({count})"
    locker = lockers.start(argv=["/bin/sh", "-c", body], before=CONTAINER)
    assert locker.end() == (0, "0\n", "")


def test_process_1_passes_signals_on(lockers: Lockers) -> None:
    locker = lockers.holder(*SHORT, before=CONTAINER, body=f"trap 'note usr; exit 4' USR1; {SLEEP}")
    (init,) = children(locker.pid)
    os.kill(init, signal.SIGUSR1)
    assert locker.end() == (4, "", "")
    assert lockers.lines("a", "usr") and lockers.session() == ""
