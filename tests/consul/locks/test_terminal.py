"""The terminal is for the command while it runs: it reads, Ctrl-C is for it, and Ctrl-Z stops nothing."""

import os
import pty
import select
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.consul.locks.lockers import Lockers
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
        self.press(f"{text}\n".encode())

    def press(self, keys: bytes) -> None:
        os.write(self._master, keys)

    def lock(self, script: str, options: str = "", before: str = "", after: str = "") -> None:
        """Run ``lock`` with a shell as its command, in the foreground.

        before: what starts ``lock``, or writes to it.
        after: a redirection, or the reader of its output.
        """
        self.type(f"{before} {self.line(script, options)} {after}; echo ended=$?")

    def line(self, script: str, options: str = "") -> str:
        """Return the line that runs ``lock`` with a shell as its command."""
        return " ".join((*COMMAND, "lock", options, self.lockers.key, "--", "bash", "-c", f"'{script}'"))

    @property
    def foreground(self) -> int:
        return os.tcgetpgrp(self._master)

    def wait(self, text: str) -> None:
        """Return when the terminal has shown this text behind the text awaited before."""

        until(lambda: text in self.shown, f"{text!r} is shown")
        self._shown = self._shown.partition(text.encode())[2]

    def wait_number(self, text: str) -> int:
        """Return the number that the terminal has shown behind this text, up to a full stop."""
        self.wait(text)
        until(lambda: "." in self.shown, "the number is shown")
        return int(self.shown.partition(".")[0])

    @property
    def shown(self) -> str:
        """The text that the terminal has shown behind the text awaited before."""
        while select.select([self._master], [], [], 0)[0]:
            self._shown += os.read(self._master, 65536)
        return self._shown.decode()

    def close(self) -> None:
        """Close the terminal, as the end of a connection does, and end the shell."""
        if self._master < 0:
            return
        os.close(self._master)
        self._master = -1
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


@pytest.mark.parametrize("first", ["", 'trap "kill -TSTP 0" TSTP; '], ids=["plain", "traps it"])
def test_ctrl_z_stops_nothing(session: Session, first: str) -> None:
    session.lock(f'{first}echo ready""=1; while read line; do echo "read=$line"; exit 3; done')
    session.wait("ready=1")
    session.press(CTRL_Z)
    session.wait("^Z")
    session.type("goes on")
    session.wait("read=goes on")
    session.wait("ended=3")


def test_a_command_that_stops_itself_is_continued(session: Session) -> None:
    """An editor suspends itself when it reads Ctrl-Z."""
    suspend = "import os, signal; signal.signal(signal.SIGTSTP, signal.SIG_DFL); os.killpg(0, signal.SIGTSTP)"
    session.lock(f'exec {sys.executable} -c "{suspend}; print(str(5) + str(5))"')
    session.wait("55")
    session.wait("ended=0")


def test_ctrl_z_does_not_stop_the_wait(session: Session) -> None:
    holder = session.lockers.holder()
    session.lock('echo begun""=1', "--verbose")
    session.wait("waiting for")
    until(lambda: session.lockers.is_waiting(2), "it waits")
    session.press(CTRL_Z)
    session.wait("^Z")
    holder.signal(signal.SIGTERM)
    session.wait("begun=1")
    session.wait("ended=0")


@pytest.mark.parametrize(
    ("before", "after"), [("", "< /dev/null"), ("echo piped |", ""), ("", "| cat"), ("", "&")]
)
def test_a_command_without_the_terminal_cannot_read_from_it_and_is_not_stopped(
    session: Session, before: str, after: str
) -> None:
    line = session.line('read line < /dev/tty || echo "error""=$?"')
    session.type(f"{before} {line} {after}")
    session.wait("error=1")
    until(lambda: session.lockers.session() == "", "the lock is released")
    session.type("echo the shell is ba''ck")
    session.wait("the shell is back")


def test_the_command_of_a_lock_below_another_lock_has_the_terminal(session: Session) -> None:
    outer = " ".join((*COMMAND, "lock", f"{session.lockers.key}-outer", "--"))
    session.lock('echo ready""=1; read line; echo "read=$line"; exec sleep 600', before=outer)
    session.wait("ready=1")
    session.type("some text")
    session.wait("read=some text")
    session.press(CTRL_C)
    session.wait("ended=130")
    assert session.lockers.session() == ""


def test_lock_may_print_while_the_command_has_the_terminal(session: Session) -> None:
    """With tostop the kernel stops a background process that writes."""
    session.type("stty tostop")
    session.lock('echo ready""=1; sleep 600', "--verbose --ttl 2s --lock-delay 3s --on-lost KILL")
    session.wait("ready=1")
    session.lockers.agent.session_destroy(session.lockers.session())
    session.wait("the command has ended: stopped")
    session.wait("ended=1")


def test_ctrl_c_is_for_each_process_of_a_command_without_the_terminal(session: Session) -> None:
    """Standard input is no terminal, so the command is in the background. The shell waits for its child."""
    child = '(trap "exit 7" INT; echo ready""=1; while :; do sleep 0.05; done)'
    session.lock(f"trap : INT; {child}; exit $?", after="< /dev/null")
    session.wait("ready=1")
    session.press(CTRL_C)
    session.wait("ended=7")


def test_a_script_that_runs_lock_beside_itself_keeps_the_terminal(session: Session) -> None:
    lock = session.line('echo begun""=1; sleep 600')
    script = f"{lock} & read line < /dev/tty; echo read=$line; kill $!"
    file = session.lockers.records.with_suffix(".sh")
    file.write_text(script)
    session.type(f"sh {file}; echo ended=$?")
    session.wait("begun=1")
    session.type("some text")
    session.wait("read=some text")
    session.wait("ended=0")
    until(lambda: session.lockers.session() == "", "the lock is released")


def test_a_pager_has_the_terminal_while_the_command_runs(session: Session) -> None:
    """The pager waits for a key with each page, and meanwhile the pipe between the two is full."""
    page = "len(sys.stdin.read(150000))"
    script = f'import sys; one = {page}; open("/dev/tty").readline(); print(f"paged={{one + {page}}}")'
    session.lock("head -c 300000 /dev/zero", after=f"| {sys.executable} -c '{script}'")
    session.type("")
    session.wait("paged=300000")
    session.wait("ended=0")


def test_a_signal_from_elsewhere_reaches_a_command_in_the_foreground(session: Session) -> None:
    session.lock('trap "exit 6" USR1; echo lock""er=$PPID.; while :; do sleep 0.05; done')
    session.wait("locker=")
    until(lambda: "." in session.shown, "the process id is shown")
    pid = session.shown.partition(".")[0]
    os.kill(int(pid), signal.SIGUSR1)
    session.wait("ended=6")


def test_the_end_of_the_command_leaves_the_terminal_to_the_shell_that_has_it(session: Session) -> None:
    """The script that ran ``lock`` is killed, so the shell has taken the terminal back."""
    file = session.lockers.records.with_suffix(".sh")
    lock = session.line('echo lock""=$PPID.; until [ -e "$RECORDS" ]; do sleep 0.05; done')
    file.write_text(f'echo script""=$$.; {lock}; echo next')
    session.type(f"bash {file}")
    script, lock_pid = session.wait_number("script="), session.wait_number("lock=")
    os.kill(script, signal.SIGTERM)
    session.wait("Terminated")
    session.lockers.records.touch()
    until(lambda: not Path(f"/proc/{lock_pid}").exists(), "lock has ended")
    session.type("echo the shell is ba''ck")
    session.wait("the shell is back")
