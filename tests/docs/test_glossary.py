"""docs/glossary.md explains each word once, in alphabetical order, and only words that are used."""

import re

import pytest

from supervisor.commands.check.report import as_text
from supervisor.config import load
from supervisor.core.actions import Role
from tests.support.examples import VARIABLES
from tests.support.pages import DOCS, GLOSSARY, README, ROOT, words_of

WORDS = dict(words_of(GLOSSARY))
COMPLETE = ROOT / "examples" / "configs" / "complete.yaml"
WORDS_MAX = 60  # of an entry: one to three sentences
PLACES = {"key", "prefix", "slots", "role"}  # lines of `check` that are no figures


def spelled(word: str) -> str:
    """Return a pattern for the word in a text that has - for each gap."""
    return re.sub(r"[_ ]", "-", word.casefold())


def test_the_words_are_in_alphabetical_order() -> None:
    words = [word for word, _ in words_of(GLOSSARY)]
    assert words == sorted(set(words), key=str.casefold)


@pytest.mark.parametrize("word", WORDS)
def test_each_word_of_the_glossary_is_used_and_its_entry_is_short(word: str) -> None:
    pages = [README, *(page for page in DOCS if page != GLOSSARY)]
    code = [*(ROOT / "supervisor").rglob("*.py"), *(ROOT / "schemas").iterdir()]
    used = re.compile(rf"\b{re.escape(word)}", re.IGNORECASE)
    assert any(used.search(file.read_text()) for file in (*pages, *code))
    assert len(WORDS[word].split()) <= WORDS_MAX


@pytest.mark.parametrize("role", Role)
def test_every_role_is_in_the_glossary(role: Role) -> None:
    assert WORDS[role].startswith("A role: ")
    assert f"`{role}`" in WORDS["role"]


def test_every_figure_of_check_is_in_the_glossary() -> None:
    text = as_text(load(COMPLETE, VARIABLES, "node1"))
    figures = set(re.findall(r"^  (\w+(?: \w+)*)  +", text, re.MULTILINE)) - PLACES
    assert len(figures) > 6
    assert {spelled(figure) for figure in figures} <= {spelled(word) for word in WORDS}
