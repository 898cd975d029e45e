"""The parser of the command line: what is unknown is refused with the word that was probably meant."""

from collections.abc import Sequence

import pytest

from supervisor.commands.cli import main
from supervisor.commands.cli.arguments import parser
from supervisor.commands.cli.exit_codes import DONE, USAGE
from supervisor.commands.cli.table import COMMANDS


def refused(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[str, str]:
    """Return the first and the last line that the parser prints when it refuses the command line."""
    with pytest.raises(SystemExit) as ended:
        parser().parse_args(words)
    assert ended.value.code == USAGE
    printed = capsys.readouterr()
    assert not printed.out
    lines = printed.err.splitlines()
    return lines[0], lines[-1]


UNKNOWN = {
    "stats": "no such command 'stats', did you mean 'status'?",
    "fly": "no such command 'fly': consul-supervisor help lists them",
    "--versoin": "no such option '--versoin', did you mean '--version'?",
    "--config c status": "no such option '--config': those of a command stand behind its name",
    "status --jsn=x a": "no such option '--jsn', did you mean '--json'?",
    "drill -speed 1": "no such option '-speed', did you mean '--speed'?",
    "wait a --fro free": "no such option '--fro', did you mean '--for'?",
    "holds a --now": "no such option '--now': consul-supervisor holds --help lists them",
    "lock k --wiat 0 -- ls": "no such option '--wiat', did you mean '--wait'?",
    "lock -http-addr=h k -- ls": "no such option '-http-addr': set CONSUL_HTTP_ADDR in the environment",
    "leader --token s3cret a": "no such option '--token': set CONSUL_HTTP_TOKEN in the environment",
    "status a b": "unrecognized arguments: b",
}


@pytest.mark.parametrize(("line", "why"), UNKNOWN.items(), ids=UNKNOWN)
def test_an_unknown_word_is_refused_with_the_one_that_was_meant(
    line: str, why: str, capsys: pytest.CaptureFixture[str]
) -> None:
    words = line.split()
    usage, last = refused(capsys, *words)
    name = " ".join(["consul-supervisor", *(word for word in words[:1] if word in COMMANDS)])
    assert usage.startswith(f"usage: {name} ")
    assert last == f"{name}: error: {why}"


@pytest.mark.parametrize(
    "words",
    [
        ["lock", "-n5", "k", "--", "ls", "--unknown", "-la"],
        ["pause", "a", "--reason", "--no such option"],
        ["step-down", "a", "--for=5m"],
    ],
    ids=" ".join,
)
def test_a_word_that_only_looks_like_an_option_is_taken(words: Sequence[str]) -> None:
    assert parser().parse_args(words).command == words[0]


def test_no_command_at_all_prints_the_help_as_an_error(capsys: pytest.CaptureFixture[str]) -> None:
    refused(capsys)
    with pytest.raises(SystemExit):
        parser().parse_args([])
    assert capsys.readouterr().err == parser().format_help()


@pytest.mark.parametrize("topic", [[], ["step-down"], ["help"]], ids=" ".join)
def test_help_prints_the_help_of_all_commands_or_of_one(
    topic: Sequence[str], capsys: pytest.CaptureFixture[str]
) -> None:
    def printed(*words: str) -> str:
        with pytest.raises(SystemExit) as ended:
            main(words)
        assert ended.value.code == DONE
        return capsys.readouterr().out

    assert printed("help", *topic) == printed(*topic, "--help") != ""


def test_version_prints_the_same_line_as_the_option(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["version"]) == DONE
    line = capsys.readouterr().out
    with pytest.raises(SystemExit):
        main(["--version"])
    assert capsys.readouterr().out == line


@pytest.mark.parametrize("command", sorted(set(COMMANDS) - {"lock"}))
def test_nothing_is_required_of_an_unfinished_command_line(command: str) -> None:
    """A lock needs a command, but takes no NAME."""
    assert parser(unfinished=True).parse_args([command]).command == command


@pytest.mark.parametrize(
    ("line", "why"),
    [
        (
            "confirm-off --all a --machine b",
            "cannot use --machine with --all MACHINE, which names the machine",
        ),
        ("step-down --all --to b", "cannot use --to with --all"),
    ],
)
def test_options_that_contradict_each_other_are_refused(
    line: str, why: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(line.split()) == USAGE
    assert why in capsys.readouterr().err
