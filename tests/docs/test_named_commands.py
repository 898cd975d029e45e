"""Commands, options and exit codes that the pages name are those of the program."""

import functools
import re
from pathlib import Path

import pytest

from tests.support.pages import PAGES, code_of, name
from tests.support.supervisor import command


@functools.cache
def helps() -> dict[str, str]:
    names = re.findall(r"^    ([a-z-]+)(?:  |$)", command("--help").stdout, re.MULTILINE)
    return {one: command(one, "--help").stdout for one in names}


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_every_named_command_and_option_exists(page: Path) -> None:
    for line in re.findall(
        r"consul-supervisor (?!consul-supervisor)([a-z][^`\n|&>]*)", "\n".join(code_of(page))
    ):
        verb, *words = line.split()
        assert verb in helps(), f"consul-supervisor {line}"
        for option in (word for word in words if word.startswith("--")):
            assert option in helps()[verb], f"consul-supervisor {line}"
    for piece in code_of(page):
        assert not piece.startswith("--") or piece in "\n".join(helps().values()), piece
