"""The terminal belongs to the command while it runs: it reads, and Ctrl-C and Ctrl-Z are for it."""

import os
import pty
import select
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.consul.locks.lockers import Lockers, children
from tests.support.supervisor import COMMAND, ENVIRON, PATIENCE_S, ROOT, until

pytestmark = pytest.mark.long

CTRL_C, CTRL_Z = b"\x03", b"\x1a"


class Session:
    """A login on a terminal of its own, in which a shell with job control runs."""

    def __init__(self, lockers: Lockers) -> None:
        self.lockers = lockers
        self.lock_pid = self.command = 0
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

    def lock(self, script: str, options: str = "", before: str = "", after: str = "") -> None:
        """Run ``lock`` with a shell as its command, in the foreground.

        before: what starts ``lock``, or writes to it.
        after: a redirection, or the reader of its output.
        """
        self.type(f"{before} {self.line(script, options)} {after}; echo ended=$?")

    def line(self, script: str, options: str = "") -> str:
        """Return the line that runs ``lock`` with a shell as its command."""
        return " ".join((*COMMAND, "lock", options, self.lockers.key, "--", "bash", "-c", f"'{script}'"))

    def in_background(self, script: str, form: str = "{} &") -> None:
        """Run ``lock`` in the background, and note the process ids of ``lock`` and of its command."""
        self.type(form.format(self.line(f'echo lock""=$PPID. command""=$$.; {script}')))
        self.lock_pid, self.command = self.wait_number("lock="), self.wait_number("command=")

    def wait_stopped(self) -> None:
        """Return when ``lock`` has stopped, and its command, and the shell has shown that."""
        until(lambda: state(self.command) == state(self.lock_pid) == "T", "the job is stopped")
        self.type("")
        self.wait("Stopped")

    @property
    def foreground(self) -> int:
        """The foreground process group."""
        return os.tcgetpgrp(self._master)

    def jobs(self) -> list[int]:
        """Return the children of the shell."""
        return children(self._process.pid)

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


def state(pid: int) -> str:
    """Return the state of a process, such as T for a stopped one."""
    with open(f"/proc/{pid}/stat") as file:
        return file.read().rpartition(")")[2].split()[0]


def runs_of(pid: int) -> int:
    """Return how often the process has stopped to run."""
    with open(f"/proc/{pid}/status") as file:
        return sum(int(line.split()[1]) for line in file if "ctxt_switches" in line)


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


def test_ctrl_z_in_a_container_does_not_stop_the_wait(session: Session) -> None:
    holder = session.lockers.holder()
    container = "unshare --pid --fork --kill-child --mount-proc setsid --ctty --wait"
    session.lock('echo begun""=1', "--verbose", before=container)
    session.wait("waiting for")
    until(lambda: session.lockers.is_waiting(2), "it waits")
    session.press(CTRL_Z)
    session.wait("^Z")
    holder.signal(signal.SIGTERM)
    session.wait("begun=1")
    session.wait("ended=0")


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


@pytest.mark.parametrize(("before", "after"), [("", "< /dev/null"), ("echo piped |", ""), ("", "| cat")])
def test_a_command_whose_standard_streams_are_elsewhere_reads_from_the_terminal(
    session: Session, before: str, after: str
) -> None:
    """A program that requests a password, such as ssh, opens the controlling terminal."""
    session.lock('read line < /dev/tty; echo "read=$line"; read line < /dev/tty', before=before, after=after)
    until(session.lockers.session, "the command has begun")
    session.type("some text")
    session.wait("read=some text")
    session.press(CTRL_C)
    session.wait("ended=")
    assert session.lockers.session() == ""
    session.type("echo the shell is ba''ck")
    session.wait("the shell is back")


def test_a_command_in_a_command_substitution_reads_from_the_terminal(session: Session) -> None:
    """Bash lets the kernel stop no process there."""
    line = session.line("read line < /dev/tty; echo in-$line")
    session.type(f'found=$({line}); echo "found=$found"')
    until(session.lockers.session, "the command has begun")
    session.type("text")
    session.wait("found=in-text")


def test_ctrl_c_is_for_each_process_of_a_command_without_the_terminal(session: Session) -> None:
    """Standard input is no terminal, so the command is in the background. The shell waits for its child."""
    child = '(trap "exit 7" INT; echo ready""=1; while :; do sleep 0.05; done)'
    session.lock(f"trap : INT; {child}; exit $?", after="< /dev/null")
    session.wait("ready=1")
    session.press(CTRL_C)
    session.wait("ended=7")


def test_a_command_in_the_background_that_reads_stops_until_fg(session: Session) -> None:
    """As any other job does, also after bg."""
    session.in_background("read line; echo read=$line; exit 3")
    session.wait_stopped()
    session.type("bg")
    session.wait("bg")
    session.wait_stopped()
    session.type("fg; echo ended=$?")
    session.type("some text")
    session.wait("read=some text")
    session.wait("ended=3")
    assert session.lockers.session() == ""


def test_a_command_that_first_reads_after_fg_gets_the_terminal(session: Session) -> None:
    """No process was stopped before fg, so the shell continued none."""
    session.in_background('until [ -e "$RECORDS" ]; do sleep 0.05; done; read line; echo read=$line')
    session.type("fg; echo ended=$?")
    session.wait("fg")
    session.lockers.records.touch()
    session.type("some text")
    session.wait("read=some text")
    session.wait("ended=0")


def test_ctrl_c_ends_a_command_that_read_in_the_background(session: Session) -> None:
    session.in_background("read line")
    session.wait_stopped()
    session.type("fg; echo ended=$?")
    session.wait("fg")
    until(lambda: session.foreground == session.command, "the command has the terminal")
    session.press(CTRL_C)
    session.wait("ended=130")


def test_a_command_that_was_stopped_in_the_background_ends_with_the_terminal(session: Session) -> None:
    session.in_background("read line")
    session.wait_stopped()
    session.close()
    until(lambda: session.lockers.session() == "", "the lock is released")
    session.lockers.assert_nothing_left()


def test_a_command_that_no_shell_can_continue_stays_stopped_when_it_reads(session: Session) -> None:
    """``lock`` stays awake, and a signal ends the command."""
    session.in_background("read line < /dev/tty", form="({} &)")
    until(lambda: state(session.command) == "T", "the command is stopped")
    time.sleep(0.2)  # the attempt to stop with the command takes some milliseconds
    runs = runs_of(session.command)
    time.sleep(0.3)
    assert runs_of(session.command) == runs and state(session.command) == "T"
    os.kill(session.lock_pid, signal.SIGTERM)
    until(lambda: session.lockers.session() == "", "the lock is released")


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


def test_a_pager_goes_on_when_the_command_has_ended(session: Session) -> None:
    """The command has the terminal. So the kernel stops the pager that reads, but not ``lock``."""
    script = 'input(); open("/dev/tty").readline(); print("paged=1")'
    session.lock(
        "read line < /dev/tty; echo lent; read line < /dev/tty; echo read=$line > /dev/tty",
        after=f"| {sys.executable} -c '{script}'",
    )
    until(session.lockers.session, "the command has begun")
    session.type("first")
    until(lambda: "T" in map(state, session.jobs()), "the pager is stopped")
    session.type("second")
    session.wait("read=second")
    until(lambda: session.lockers.session() == "", "it has ended")
    session.type("third")
    session.wait("paged=1")
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


def test_timeout_ends_a_lock_whose_command_was_stopped(session: Session) -> None:
    """``timeout`` is in the background there, and ignores the signal for a process that reads."""
    file = session.lockers.records.with_suffix(".sh")
    file.write_text(f"timeout 2 {session.line('read line < /dev/tty')}; echo ended=$?")
    session.type(f"bash {file}")
    session.wait("ended=124")
    until(lambda: session.lockers.session() == "", "the lock is released")


@pytest.mark.parametrize("after", ["| cat", "< /dev/null"])
def test_the_command_of_a_lock_below_another_lock_reads_and_stops(session: Session, after: str) -> None:
    outer = " ".join((*COMMAND, "lock", f"{session.lockers.key}-outer", "--"))
    read = 'echo pid""=$$.; read line < /dev/tty; echo "read=$line"; exec sleep 600'
    session.lock(read, before=outer, after=after)
    command = session.wait_number("pid=")
    session.type("some text")
    session.wait("read=some text")
    session.press(CTRL_Z)
    session.wait("Stopped")
    assert state(command) == "T"
    session.type("fg")
    until(lambda: state(command) != "T", "the command goes on")
    session.press(CTRL_C)
    until(lambda: session.lockers.session() == "", "the lock is released")


def test_ctrl_z_stops_the_command_of_a_lock_below_another_lock(session: Session) -> None:
    """Neither of the two has the terminal, because no process has read from it."""
    outer = " ".join((*COMMAND, "lock", f"{session.lockers.key}-outer", "--"))
    session.lock('echo pid""=$$.; exec sleep 600', before=outer, after="< /dev/null")
    command = session.wait_number("pid=")
    session.press(CTRL_Z)
    session.wait("Stopped")
    assert state(command) == "T"
    session.type("fg")
    until(lambda: state(command) != "T", "the command goes on")
    session.press(CTRL_C)
    until(lambda: session.lockers.session() == "", "the lock is released")
