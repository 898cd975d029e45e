"""The terminal belongs to the command while it runs: it reads, and Ctrl-C and Ctrl-Z are for it."""

import os
import pty
import select
import signal
import subprocess
import sys
import time
from collections.abc import Iterator

import pytest

from tests.consul.locks.lockers import Lockers
from tests.support.patience import patient
from tests.support.supervisor import COMMAND, ENVIRON, PATIENCE_S, ROOT, until

pytestmark = pytest.mark.long

CTRL_C, CTRL_Z = b"\x03", b"\x1a"


class Session:
    """A login on a terminal of its own, in which a shell with job control runs."""

    def __init__(self, lockers: Lockers) -> None:
        self.lockers = lockers
        self._master, slave = pty.openpty()
        self._shown = b""
        environ = {
            **ENVIRON,
            "CONSUL_HTTP_ADDR": lockers.agent.url,
            "RECORDS": str(lockers.records),
            "PS1": "$ ",
        }
        attach = ["setsid", "--ctty", "--wait", "bash", "--norc", "--noprofile", "-i"]
        self._process = subprocess.Popen(
            attach, stdin=slave, stdout=slave, stderr=slave, cwd=ROOT, env={**environ, "TERM": "dumb"}
        )
        os.close(slave)

    def type(self, text: str) -> None:
        """Send a line to the terminal."""
        self.press(f"{text}\n".encode())

    def press(self, keys: bytes) -> None:
        """Send keys to the terminal."""
        os.write(self._master, keys)

    def lock(self, script: str, options: str = "", before: str = "") -> None:
        """Run ``lock`` with a shell as its command, in the foreground. ``before``: what starts ``lock``."""
        lock = " ".join(
            (before, *COMMAND, "lock", options, self.lockers.key, "--", "sh", "-c", f"'{script}'")
        )
        self.type(f"{lock}; echo ended=$?")

    def wait(self, text: str) -> None:
        """Return when the terminal has shown this text behind the text awaited before."""

        until(lambda: text in self.shown, f"{text!r} is shown")
        self._shown = self._shown.partition(text.encode())[2]

    @property
    def shown(self) -> str:
        """The text that the terminal has shown behind the text awaited before."""
        while select.select([self._master], [], [], 0)[0]:
            self._shown += os.read(self._master, 65536)
        return self._shown.decode()

    def close(self) -> None:
        os.close(self._master)
        self._process.kill()
        self._process.wait(PATIENCE_S)


@pytest.fixture
def session(lockers: Lockers) -> Iterator[Session]:
    made = Session(lockers)
    yield made
    made.close()


def test_the_command_reads_from_the_terminal_and_gives_it_back(session: Session) -> None:
    session.lock('echo ready""=1; read line; echo "read=$line"')
    session.wait("ready=1")
    session.type("some text")
    session.wait("read=some text")
    session.wait("ended=0")
    session.type("echo the shell is ba''ck")
    session.wait("the shell is back")


def test_ctrl_c_is_for_the_command(session: Session) -> None:
    """``lock`` goes on until the command has ended, releases, and ends as the command did."""
    session.lock('trap "echo cau""ght; sleep 0.3; exit 5" INT; echo ready""=1; while :; do sleep 0.05; done')
    session.wait("ready=1")
    session.press(CTRL_C)
    session.wait("caught")
    session.wait("ended=5")
    assert session.lockers.session() == ""


def test_ctrl_c_ends_a_command_that_does_not_catch_it(session: Session) -> None:
    session.lock('echo ready""=1; exec sleep 600')
    session.wait("ready=1")
    session.press(CTRL_C)
    session.wait("ended=130")
    assert session.lockers.session() == ""


def test_ctrl_c_ends_the_wait(session: Session) -> None:
    session.lockers.holder()
    session.lock("echo never", "--verbose")
    session.wait("waiting for")
    until(lambda: session.lockers.is_waiting(2), "it waits")
    session.press(CTRL_C)
    session.wait("ended=130")


def test_ctrl_z_stops_lock_and_fg_continues_both(session: Session) -> None:
    session.lock(
        'sleep 0.3; echo ready""=1; while read line; do echo "read=$line"; [ "$line" = end ] && exit 0; done'
    )
    session.wait("ready=1")
    session.press(CTRL_Z)
    session.wait("Stopped")
    session.type("echo shell''=1")
    session.wait("shell=1")
    assert session.lockers.session()
    session.type("fg")
    session.type("again")
    session.wait("read=again")
    session.type("end")
    session.wait("read=end")
    session.type("echo shell''=2")
    session.wait("shell=2")
    until(lambda: session.lockers.session() == "", "the lock is released")


def test_ctrl_z_in_a_container_stops_nothing_for_long(session: Session) -> None:
    """No shell could continue the command, so it is continued at once."""
    container = "unshare --pid --fork --kill-child --mount-proc setsid --ctty --wait"
    session.lock(
        'sleep 0.3; echo ready""=1; while read line; do echo "read=$line"; exit 3; done', before=container
    )
    session.wait("ready=1")
    session.press(CTRL_Z)
    session.type("goes on")
    session.wait("read=goes on")
    session.wait("ended=3")


def test_lock_may_print_while_the_command_has_the_terminal(session: Session) -> None:
    """With tostop the kernel stops a background process that writes."""
    session.type("stty tostop")
    session.lock('echo ready""=1; sleep 600', "--verbose --ttl 2s --lock-delay 3s --on-lost KILL")
    session.wait("ready=1")
    session.lockers.agent.session_destroy(session.lockers.session())
    session.wait("the command has ended: stopped")
    session.wait("ended=1")


def test_a_command_that_was_stopped_for_longer_than_the_lease_does_not_go_on(session: Session) -> None:
    """A TERM would let the command go on for a while, beside a rival."""
    ready = 'trap "" TERM; sleep 0.3; echo ready""=1'
    session.lock(f"{ready}; while :; do sleep 0.05; done", "--ttl 2s --lock-delay 9s")  # room 3.5 s
    session.wait("ready=1")
    session.press(CTRL_Z)
    session.wait("Stopped")
    time.sleep(4)
    session.type("fg")
    session.wait("(lease-expired): the command was ended: ")
    until(lambda: "\n" in session.shown, "the line ends")
    assert "ignored TERM" not in session.shown


def test_a_command_without_the_terminal_is_sent_ctrl_c_as_well(session: Session) -> None:
    """Standard input is no terminal, so the command is in the background."""
    script = 'echo ready""=1; exec sleep 600'
    lock = " ".join((*COMMAND, "lock", session.lockers.key, "--", "sh", "-c", f"'{script}'"))
    session.type(f"{lock} < /dev/null; echo ended=$?")
    session.wait("ready=1")
    session.press(CTRL_C)
    session.wait("ended=130")


def test_a_pager_goes_on_when_the_command_has_ended(session: Session) -> None:
    """The pager was in the background of the terminal while the command ran."""
    read_key = (
        f'{sys.executable} -c \'import sys; sys.stdin.read(); open("/dev/tty").readline(); print("paged=1")\''
    )
    lock = " ".join((*COMMAND, "lock", session.lockers.key, "--", "sh", "-c", "'sleep 0.3'"))
    session.type(f"{lock} | {read_key}; echo ended=$?")
    began = time.monotonic()
    until(lambda: session.lockers.is_waiting(0) and time.monotonic() - began > patient(1.0), "it has ended")
    session.type("")
    session.wait("paged=1")
    session.wait("ended=0")


def test_a_signal_from_elsewhere_reaches_a_command_in_the_foreground(session: Session) -> None:
    session.lock('trap "exit 6" USR1; echo lock""er=$PPID.; while :; do sleep 0.05; done')
    session.wait("locker=")
    until(lambda: "." in session.shown, "the process id is shown")
    pid = session.shown.partition(".")[0]
    os.kill(int(pid), signal.SIGUSR1)
    session.wait("ended=6")
