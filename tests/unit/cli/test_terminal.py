"""Questions on the terminal, which destroy nothing and move no leader unless the answer is yes."""

import io

import pytest

from supervisor.commands.cli.exit_codes import DONE, NEGATIVE, USAGE
from supervisor.commands.cli.terminal import confirm


class Terminal(io.StringIO):
    """Standard input with a line that a person has typed."""

    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("typed", "code"),
    [
        ("y\n", DONE),
        ("YES \n", DONE),
        ("\n", NEGATIVE),
        ("no\n", NEGATIVE),
        ("yess\n", NEGATIVE),
        ("", NEGATIVE),
    ],
)
def test_only_yes_is_yes(
    typed: str, code: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.stdin", Terminal(typed))
    assert confirm("hand over", "app was not handed over") == code
    refused = "" if code == DONE else "consul-supervisor: app was not handed over\n"
    assert capsys.readouterr() == ("", f"Hand over? [y/N] {refused}")


def test_nothing_is_asked_without_a_terminal(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A script that pipes its input would answer by chance."""
    monkeypatch.setattr("sys.stdin", io.StringIO("y\n"))
    assert confirm("destroy it", "it was not destroyed") == USAGE
    why = "cannot ask whether to destroy it: standard input is no terminal; add --yes"
    assert capsys.readouterr() == ("", f"consul-supervisor: {why}\n")
