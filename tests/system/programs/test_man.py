"""The man pages as man and mandoc of Debian read them: without a warning, and with all that they say."""

import re
from collections.abc import Sequence
from pathlib import Path

import pytest

from docs import man
from tests.support.captured import captured
from tests.support.supervisor import PATIENCE_S

READERS = {
    "man": ("man", "--warnings", "-E", "UTF-8", "-l", "-Tutf8", "-Z"),
    "mandoc": ("mandoc", "-T", "lint", "-W", "warning"),
}
PAGES = ("consul-supervisor.1", "consul-supervisor.yaml.5")


def output(*argv: str) -> tuple[str, str]:
    environ = {"PATH": "/usr/bin:/bin", "LC_ALL": "C.UTF-8", "MANWIDTH": "80"}
    done = captured(argv, env=environ, timeout=PATIENCE_S)
    return done.stdout, done.stderr


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    man.write(tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(PAGES)
    return tmp_path


@pytest.mark.parametrize("page", PAGES)
@pytest.mark.parametrize("reader", READERS)
def test_a_page_is_read_without_a_warning(reader: str, page: str, folder: Path) -> None:
    printed, warnings = output(*READERS[reader], str(folder / page))
    assert warnings == ""
    assert reader == "man" or printed == ""  # the warnings of mandoc are its output


@pytest.mark.parametrize("page", PAGES)
@pytest.mark.parametrize("reader", [("man", "-l"), ("mandoc", "-T", "utf8")], ids=lambda reader: reader[0])
def test_a_page_has_the_usual_sections(reader: Sequence[str], page: str, folder: Path) -> None:
    printed, _ = output(*reader, str(folder / page))
    lines = re.sub(".\b", "", printed).splitlines()  # a bold letter is printed over itself
    assert {"NAME", "SYNOPSIS", "DESCRIPTION", "FILES", "EXAMPLES", "SEE ALSO"} <= set(lines)
    name, _, number = page.rpartition(".")
    assert lines[0].startswith(f"{name.upper()}({number})")
