"""A writer to a descriptor that other processes fill never waits, and does not change it for them."""

import os
import pty
import select
import signal
import socket
import termios
import threading
from collections.abc import Callable, Iterator, Sequence

import pytest

from supervisor.adapters.filesystem.writing import NonBlockingWriter
from tests.support.patience import PATIENCE_S

LONG_BYTES = 1 << 19
FULL = b"x" * (1 << 20)


@pytest.fixture(autouse=True)
def interrupted() -> Iterator[None]:
    """Interrupt a write that waits."""

    def interrupt(number: int, frame: object) -> None:
        raise AssertionError("a write waits")

    former = signal.signal(signal.SIGALRM, interrupt)
    signal.setitimer(signal.ITIMER_REAL, PATIENCE_S)
    yield
    signal.setitimer(signal.ITIMER_REAL, 0)
    signal.signal(signal.SIGALRM, former)


class AlwaysReady:
    """A poll after which another process fills the descriptor."""

    def poll(self, wait_ms: int) -> list[tuple[int, int]]:
        return [(0, select.POLLOUT)]


def fill(fd: int) -> None:
    """Write until the descriptor takes no more, and make it blocking again."""
    os.set_blocking(fd, False)
    try:
        while True:
            os.write(fd, FULL)
    except BlockingIOError:
        os.set_blocking(fd, True)


def write_after_poll(fd: int) -> None:
    """Write a line after a poll that reported room."""
    writer = NonBlockingWriter(fd)
    writer._poll = AlwaysReady()  # type: ignore[assignment]
    writer.write("line\n")
    writer.finish()
    assert os.get_blocking(fd)


@pytest.mark.parametrize("make", [os.pipe, lambda: [each.detach() for each in socket.socketpair()]])
def test_a_pipe_or_socket_that_is_filled_after_the_poll_is_not_waited_for(
    make: Callable[[], Sequence[int]],
) -> None:
    reader, writer = make()
    fill(writer)
    write_after_poll(writer)
    os.close(reader)
    os.close(writer)


def test_a_stopped_terminal_is_not_waited_for_and_shows_the_line_later() -> None:
    master, terminal = pty.openpty()
    termios.tcflow(terminal, termios.TCOOFF)
    writer = NonBlockingWriter(terminal)
    writer._poll = AlwaysReady()  # type: ignore[assignment]
    writer.write("line\n")
    writer.flush()
    assert not select.select([master], [], [], 0)[0]
    termios.tcflow(terminal, termios.TCOON)
    writer.flush()
    assert os.read(master, 100) == b"line\r\n" and os.get_blocking(terminal)
    os.close(master)
    os.close(terminal)


def test_the_pipe_of_another_user_is_written_while_it_takes_text(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(path: str, flags: int) -> int:
        raise PermissionError

    reader, writer = os.pipe()
    with monkeypatch.context() as patched:
        patched.setattr("os.open", refuse)
        outlet = NonBlockingWriter(writer)
    outlet.write("line\n")
    outlet.finish()
    assert os.read(reader, 100) == b"line\n"
    fill(writer)
    outlet.write("line\n")
    outlet.finish()
    os.close(reader)
    os.close(writer)


def test_the_last_wait_is_one_wait_although_the_reader_takes_a_little_again_and_again() -> None:
    reader, writer = os.pipe()
    over, taken = threading.Event(), 0

    def take() -> None:
        nonlocal taken
        while not over.wait(0.05):
            taken += len(os.read(reader, select.PIPE_BUF))

    taking = threading.Thread(target=take)
    fill(writer)
    outlet = NonBlockingWriter(writer)
    outlet.write("x" * LONG_BYTES + "\n")  # more than the reader takes in six seconds
    taking.start()
    outlet.finish()
    taken_by_then = taken
    over.set()
    taking.join()
    os.close(reader)
    os.close(writer)
    assert taken_by_then < LONG_BYTES / 2
