"""``status --watch`` in a pseudo-terminal of the test, which computes the picture on its screen."""

import json
import signal
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from supervisor.commands.cli.display.screen import CLEAR_LINE, ENTER, HOME, LEAVE, frame
from supervisor.commands.cli.display.text import width
from tests.support.supervisor import PATIENCE_S, until
from tests.support.terminal import COLOURS, Terminal
from tests.support.unix_peer import UnixPeer, answer_of
from tests.unit.cli.test_table import USUAL, item, status


class Daemon(UnixPeer):
    """A daemon whose status is ``told``, which a test may change."""

    def __init__(self, path: Path) -> None:
        self.told: dict[str, Any] = USUAL
        super().__init__(path, lambda: answer_of(json.dumps(self.told).encode()))


@pytest.fixture
def socket() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="watch-") as folder:
        yield Path(folder) / "c.sock"


def watching(socket: Path, *arguments: str, **how: Any) -> Terminal:
    return Terminal("status", *arguments, "--watch", "--socket", str(socket), **how)


@pytest.mark.long
def test_the_status_is_drawn_each_second_on_a_screen_of_its_own(socket: Path) -> None:
    with Daemon(socket) as daemon, watching(socket) as terminal:
        terminal.wait_for("namenode")
        assert terminal.text.startswith(ENTER)
        assert terminal.picture()[3].startswith("* namenode")
        daemon.told = status(item("appeared"))
        terminal.wait_for("appeared")
        terminal.wait_for("appeared", len(terminal.text))
        until(lambda: "namenode" not in "".join(terminal.picture()), "the new picture is complete")
        begun = time.monotonic()
        count = len(daemon.asked)
        until(lambda: len(daemon.asked) >= count + 2, "the command requests the status again")
        assert time.monotonic() - begun > 0.5  # at a limited rate


@pytest.mark.parametrize("end", ["ctrl-c", "term"])
def test_the_terminal_is_restored_after_ctrl_c_and_after_term(socket: Path, end: str) -> None:
    with Daemon(socket), watching(socket) as terminal:
        terminal.wait_for("namenode")
        assert terminal.attributes() != terminal.before
        terminal.type(b"typed meanwhile")
        drawn = len(terminal.frames())  # the kernel delivers typed keys a moment later
        until(lambda: len(terminal.frames()) > drawn, "the next picture")
        if end == "ctrl-c":
            terminal.type(b"\x03")
        else:
            terminal.process.send_signal(signal.SIGTERM)
        assert terminal.ended() == 0
        assert terminal.text.endswith(LEAVE)
        assert terminal.attributes() == terminal.before
        assert "typed" not in terminal.text and "Traceback" not in terminal.text


def test_ctrl_z_restores_the_terminal_until_the_command_goes_on(socket: Path) -> None:
    with Daemon(socket), watching(socket) as terminal:
        terminal.wait_for("namenode")
        terminal.type(b"\x1a")
        child = psutil.Process(terminal.process.pid)
        until(lambda: child.status() == psutil.STATUS_STOPPED, "the command stops")
        assert terminal.read().endswith(LEAVE) and terminal.attributes() == terminal.before
        since = len(terminal.text)
        child.resume()
        terminal.wait_for("namenode", since)
        assert terminal.text[since:].startswith(ENTER)
        terminal.type(b"\x03")
        assert terminal.ended() == 0 and terminal.attributes() == terminal.before


def test_ctrl_c_ends_the_watch_while_a_daemon_does_not_answer(socket: Path) -> None:
    with UnixPeer(socket, lambda: [], stay=True) as peer, watching(socket) as terminal:
        until(lambda: peer.asked, "the command requests the status")
        terminal.type(b"\x03")
        begun = time.monotonic()
        assert terminal.ended() == 0
        assert time.monotonic() - begun < PATIENCE_S / 2
        assert terminal.text.endswith(LEAVE)


@pytest.mark.parametrize(
    ("variable", "coloured"), [({}, True), ({"NO_COLOR": "1"}, False), ({"TERM": "dumb"}, False)]
)
def test_the_status_is_coloured_on_a_terminal_unless_no_color_or_dumb(
    socket: Path, variable: dict[str, str], coloured: bool
) -> None:
    with Daemon(socket), Terminal("status", "--socket", str(socket), environ=variable) as terminal:
        assert terminal.ended() == 0
        assert bool(COLOURS.search(terminal.text)) is coloured
        assert max(map(width, COLOURS.sub("", terminal.text).split("\r\n"))) <= 80


def test_a_picture_has_at_most_the_rows_of_the_terminal() -> None:
    assert frame(["a", "b"], 80, 3) == f"{HOME}{CLEAR_LINE}a\n{CLEAR_LINE}b\n\x1b[J"
    assert frame(["a", "b"], 80, 2) == f"{HOME}{CLEAR_LINE}a\n{CLEAR_LINE}b"
    assert frame(["a", "b", "c", "d"], 80, 3).count("\n") == 2
    assert "2 more lines" in frame(["a", "b", "c", "d"], 80, 3)
