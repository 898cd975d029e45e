"""The completion as bash, zsh and fish of Debian find and run it: somebody types, presses TAB and reads."""

import json
import re
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import pytest

from docs import completion
from tests.support.programs import script
from tests.support.supervisor import until
from tests.support.terminal import Terminal
from tests.support.unix_peer import UnixPeer, answer_of
from tests.unit.cli.test_table import item, status

CONFIG = """\
elections:
  web-front: {on_lose: [{shell: systemctl stop web}]}
  web-back: {on_lose: [{shell: systemctl stop web}]}
semaphores:
  rebuild: {limit: 2}
"""
PROMPT = "%%% "
AGAIN_S = 5.0  # TAB is pressed again, because on a busy machine the second that a completion has may be over
CONTROLS = re.compile(r"\x1b(\[[0-9;?]*[A-Za-z]|\(B|\][^\x07]*\x07|[=>])|\r(?!\n)")
CLEAR = b"\x15\x0c"  # an empty line on an empty screen


class Shell(NamedTuple):
    """A shell, as its user has set it up.

    start: the file that it reads first, and its text.
    """

    program: Sequence[str]
    start: tuple[str, str]


SHELLS = {
    "bash": Shell(
        ("bash", "--noprofile", "--rcfile", "{folder}/rc"),
        (
            "rc",
            ". /usr/share/bash-completion/bash_completion\nbind 'set show-all-if-ambiguous on'\nPS1='%%% '\n",
        ),
    ),
    "zsh": Shell(
        ("zsh", "-i"),
        (
            ".zshrc",
            "fpath=({folder}/share/zsh/site-functions $fpath)\nautoload -U compinit\ncompinit -u\n"
            "unsetopt list_ambiguous\nPS1='%%%%%% '\n",
        ),
    ),
    "fish": Shell(
        ("fish",), ("fish/config.fish", "set fish_greeting\nfunction fish_prompt; echo -n '%%% '; end\n")
    ),
}


class User(Terminal):
    """Somebody at a shell."""

    def after_tab(self, line: str, *wanted: str) -> str:
        """Type the line, press TAB until all that is wanted is on the screen, and return what was written."""
        since = len(self.read())
        self.type(CLEAR + line.encode())
        self.wait_for_shown(line, since)

        def shown() -> str:
            self.type(b"\t")
            try:
                until(lambda: all(each in self.shown(since) for each in wanted), "candidates", AGAIN_S)
            except AssertionError:
                return ""
            return self.shown(since)

        return until(shown, f"{wanted} in {self.shown(since)!r}")

    def wait_for_shown(self, text: str, since: int) -> None:
        until(lambda: text in self.shown(since), f"{text!r} in {self.text[-2000:]!r}")

    def shown(self, since: int) -> str:
        """Return what was written since then, without colours and moves of the cursor."""
        return CONTROLS.sub("", self.read()[since:])


@pytest.fixture
def environ(tmp_path: Path) -> Mapping[str, str]:
    """A user's environment: the program on PATH, and nothing of the one who runs the tests."""
    (tmp_path / "bin").mkdir()
    program = script(tmp_path / "bin" / "consul-supervisor", f'exec "{sys.executable}" -m supervisor "$@"')
    return {
        "PATH": f"{program.parent}:/usr/bin:/bin",
        "HOME": str(tmp_path),
        "ZDOTDIR": str(tmp_path),
        "XDG_CONFIG_HOME": str(tmp_path),
        "XDG_DATA_HOME": str(tmp_path / "data"),
        "XDG_DATA_DIRS": f"{tmp_path}/share:/usr/share",
    }


@pytest.fixture(params=list(SHELLS))
def user(request: pytest.FixtureRequest, tmp_path: Path, environ: Mapping[str, str]) -> Iterator[User]:
    shell = SHELLS[request.param]
    script = tmp_path / "share" / completion.PLACES[request.param]
    completion.write(script.parent)
    name, text = shell.start
    (tmp_path / name).parent.mkdir(exist_ok=True)
    (tmp_path / name).write_text(text.replace("{folder}", str(tmp_path)))
    (tmp_path / "election.yaml").write_text(CONFIG)
    program = [word.format(folder=tmp_path) for word in shell.program]
    with User(program=program, environ=environ, columns=200) as user:
        user.wait_for_shown(PROMPT, 0)
        yield user


@pytest.fixture
def socket() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="tab-") as folder:
        yield Path(folder) / "c.sock"


def test_commands_options_and_values_follow_what_was_typed(user: User) -> None:
    shown = user.after_tab("consul-supervisor st", "status", "step-down")
    assert "resume" not in shown
    user.after_tab("consul-supervisor drill --sp", "--speed")
    shown = user.after_tab("consul-supervisor wait --for ", "holding", "leader", "free")
    assert "--timeout" not in shown
    user.after_tab("consul-supervisor help st", "status", "step-down")


def test_files_follow_where_one_is_taken(user: User, tmp_path: Path) -> None:
    user.after_tab(f"consul-supervisor members --config {tmp_path}/el", "election.yaml")
    user.after_tab(f"consul-supervisor check {tmp_path}/el", "election.yaml")


def test_names_of_the_named_configuration_follow(user: User) -> None:
    user.after_tab("consul-supervisor members --config ~/election.yaml ", "web-front", "web-back", "rebuild")
    user.after_tab("consul-supervisor limit --config ~/election.yaml ", "rebuild")
    user.after_tab("consul-supervisor drill ~/election.yaml w", "web-front", "web-back")


def test_names_of_the_running_daemon_follow(user: User, socket: Path, tmp_path: Path) -> None:
    items = [item("database"), item("dashboard"), item("$(touch ~/run-by-the-shell)")]
    with UnixPeer(socket, lambda: answer_of(json.dumps(status(*items)).encode())) as daemon:
        line = f"consul-supervisor step-down --socket {socket} "
        user.after_tab(line, "database", "dashboard")
        user.after_tab(f"{line}dat", "database")
    assert all(request.startswith(b"GET /v1/status ") for request in daemon.asked)
    assert not (tmp_path / "run-by-the-shell").exists()
