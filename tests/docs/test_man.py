"""The man pages: they have every command, option, exit code, variable and key, and no text becomes markup."""

import json
import re

import pytest

from docs import commands, man, reference
from supervisor.commands.cli import table
from supervisor.commands.cli.exit_codes import OF_ALL
from supervisor.config.places import VARIABLE
from tests.support.supervisor import ROOT

PAGES = man.pages()
COMMANDS, CONFIGURATION = PAGES.values()
SECTIONS = re.split(r"^(?=\.S[SH] )", COMMANDS, flags=re.MULTILINE)
REQUESTS = {"TH", "SH", "SS", "TP", "PP", "RS", "RE", "B", "BR", "nf", "fi"}


def plain(roff: str) -> str:
    """Return the text as it is read, in one line."""
    return " ".join(re.sub(r"\\f[BIR]|\\[,/]", "", roff).replace("\\-", "-").replace("\\\\", "\\").split())


@pytest.mark.parametrize("command", commands.commands())
def test_each_command_has_its_arguments_and_exit_codes(command: str) -> None:
    found = (each for each in SECTIONS if plain(each).startswith(f".SS consul-supervisor {command} "))
    section = plain(next(found))
    parser = commands.commands()[command]
    assert f"usage: {' '.join(commands.usage_of(parser).split())} " in section
    for action in parser._actions:
        if "--help" not in action.option_strings:
            help = parser._get_formatter()._expand_help(action)
            names = action.option_strings or [str(action.metavar)]
            assert f"{names[-1]} " in section and " ".join(help.split()) in section, action
    for code, meaning in table.COMMANDS[command].codes.items():
        assert (f" {code} {meaning}" in section) == (OF_ALL.get(code) != meaning)


def test_the_other_sections_name_exit_codes_files_and_variables() -> None:
    text = plain(COMMANDS)
    for code, meaning in man.CODES.items():
        assert f"{code} {meaning}" in text.partition("EXIT STATUS")[2]
    schema = json.loads((ROOT / "schemas" / "config.schema.json").read_text())["properties"]
    for key in ("control_socket", "state_dir"):
        assert f"{schema[key]['default']} " in text.partition(" FILES ")[2]
    read = set(re.findall(r'"(CONSUL_[A-Z_]+)"', (ROOT / "supervisor/config/consul.py").read_text()))
    assert set(re.findall(r"CONSUL_[A-Z_]+", text.partition(" ENVIRONMENT ")[2])) == {*read, VARIABLE}


def test_each_key_of_the_configuration_is_described() -> None:
    text = plain(CONFIGURATION)
    for title, _, properties in reference.definitions():
        assert f".SH {title.upper()}" in text
        for key, rule in properties:
            assert f".TP {key} " in text and rule["description"].replace("`", "") in text


@pytest.mark.parametrize("file", PAGES, ids=lambda file: file.rpartition("/")[2])
def test_no_line_of_text_is_taken_for_a_request(file: str) -> None:
    for line in PAGES[file].splitlines():
        if line.startswith((".", "'")):
            assert line[1:].split(" ")[0] in REQUESTS, line


def test_the_width_of_a_terminal_does_not_change_the_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    assert man.pages() == PAGES
