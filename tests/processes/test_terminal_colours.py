"""``status`` in a pseudo-terminal, as an operator sees it."""

import json
import tempfile
from pathlib import Path

import pytest

from supervisor.commands.cli.display.text import width
from tests.support.terminal import COLOURS, Terminal
from tests.support.unix_peer import UnixPeer, answer_of
from tests.unit.cli.test_table import USUAL


@pytest.mark.parametrize(
    ("variable", "coloured"), [({}, True), ({"NO_COLOR": "1"}, False), ({"TERM": "dumb"}, False)]
)
def test_the_status_is_coloured_on_a_terminal_unless_no_color_or_dumb(
    variable: dict[str, str], coloured: bool
) -> None:
    with tempfile.TemporaryDirectory(prefix="status-") as folder:
        socket = Path(folder) / "c.sock"
        with (
            UnixPeer(socket, lambda: answer_of(json.dumps(USUAL).encode())),
            Terminal("status", "--socket", str(socket), environ=variable) as terminal,
        ):
            assert terminal.ended() == 0
            assert bool(COLOURS.search(terminal.text)) is coloured
            assert max(map(width, COLOURS.sub("", terminal.text).split("\r\n"))) <= 80
