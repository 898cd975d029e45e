"""Contents of the pages for readers, taken from their Markdown: blocks, tables, code, anchors."""

import re
import tomllib
from pathlib import Path
from typing import NamedTuple
from xml.etree import ElementTree

import pytest

ROOT = Path(__file__).resolve().parents[2]
README = ROOT / "README.md"
ARCHITECTURE = ROOT / "ARCHITECTURE.md"
CONTRIBUTING = ROOT / "CONTRIBUTING.md"
GLOSSARY = ROOT / "docs" / "glossary.md"
HOOKS = ROOT / "docs" / "hooks.md"
LEASE = ROOT / "docs" / "lease.md"
HTTP = ROOT / "docs" / "http.md"
INSTALL = ROOT / "docs" / "install.md"
DRILL = ROOT / "docs" / "drill.md"
SAFETY = ROOT / "docs" / "safety.md"
SECURITY = ROOT / "docs" / "security.md"
OPERATIONS = ROOT / "docs" / "operations.md"
START = ROOT / "docs" / "start.md"
TOOLS = ROOT / "docs" / "tools.md"
RECIPES = ROOT / "examples" / "README.md"
FIRST_PAGES = tuple(ROOT / "docs" / f"{page}.md" for page in ("README", "moving", "comparison"))
DOCS = sorted((ROOT / "docs").glob("*.md"))
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
REPOSITORY: str = PROJECT["tool"]["hatch"]["metadata"]["hooks"]["custom"]["repository"]
PAGES = [README, ARCHITECTURE, CONTRIBUTING, *DOCS, RECIPES, ROOT / "CHANGELOG.md"]
SVG = "{http://www.w3.org/2000/svg}"
HIDDEN = re.compile(r"^(?:[ \t>]+```|[ \t>]*~~~|    \$ )", re.MULTILINE)  # blocks that ``fenced`` would miss


class Block(NamedTuple):
    """A fenced block.

    section: the heading above it, other than the page's title.
    language: blank: none.
    """

    section: str
    language: str
    text: str


def name(page: Path) -> str:
    return str(page.relative_to(ROOT))


def fenced(page: Path) -> list[Block]:
    """Return all blocks of a page, in their order; AssertionError when one may have been overlooked."""
    markdown = page.read_text()
    pieces = re.split(r"^(```.*)\n", markdown, flags=re.MULTILINE)
    prose, openings, texts, closings = (pieces[at::4] for at in range(4))
    assert len(prose) == len(openings) + 1 and set(closings) <= {"```"}, f"{name(page)}: a block has no end"
    assert not HIDDEN.search(markdown), f"{name(page)}: a block begins with three backticks at a line's start"
    section, blocks = "", []
    for before, opening, text in zip(prose, openings, texts, strict=False):
        section = [section, *re.findall(r"^##+ (.+)$", before, re.MULTILINE)][-1]
        blocks.append(Block(section, opening.removeprefix("```"), text))
    return blocks


class Shown:
    """The blocks of some pages, and which of them the tests of one module check.

    A test takes its blocks with ``by``. ``untested`` names every other block, so that none is forgotten.
    """

    def __init__(self, *pages: Path) -> None:
        self._blocks = [(page, block) for page in pages for block in fenced(page)]
        self._taken: set[tuple[Path, Block]] = set()

    def by(self, page: Path, section: str, language: str, argument: str = "shown") -> pytest.MarkDecorator:
        """Run the test once for each block of that section and language, with its text as argument."""
        wanted = (page, section, language)
        found = [(at, block) for at, block in self._blocks if (at, block.section, block.language) == wanted]
        assert found, f"{name(page)} has no {language} in section {section!r}"
        self._taken |= set(found)
        ids = [f"{language}-{number}" for number in range(1, len(found) + 1)]
        return pytest.mark.parametrize(argument, [block.text for _, block in found], ids=ids)

    def of(self, page: Path, section: str) -> list[Block]:
        """Take all blocks of a section, in their order, for a test that needs them together."""
        found = [(at, block) for at, block in self._blocks if (at, block.section) == (page, section)]
        assert found, f"{name(page)} has no block in section {section!r}"
        self._taken |= set(found)
        return [block for _, block in found]

    def session(self, page: Path, section: str) -> pytest.MarkDecorator:
        """Give the test the commands of a section (sh) with the output below each block (text)."""
        prompts = {"sh": "$ ", "text": ""}
        shown = "".join(
            prompts[block.language] + line
            for block in self.of(page, section)
            for line in block.text.splitlines(True)
        )
        return pytest.mark.parametrize("shown", [shown], ids=["session"])

    def untested(self) -> list[tuple[str, str, str]]:
        """Return page, section and language of every block that no test has taken."""
        left = [(page, block) for page, block in self._blocks if (page, block) not in self._taken]
        return [(name(page), block.section, block.language) for page, block in left]


def rows(page: Path, heading: str) -> list[list[str]]:
    """Return the cells of the table whose first column has this heading, without the heading."""
    table = page.read_text().partition(f"\n| {heading} |")[2].partition("\n\n")[0]
    assert table, f"{name(page)} has no table of {heading}"
    lines = table.splitlines()[2:]
    return [[cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]] for line in lines]


def first_codes(page: Path, heading: str) -> list[str]:
    return [re.sub(r"`(.*?)`.*", r"\1", row[0]) for row in rows(page, heading)]


def words_of(page: Path) -> list[tuple[str, str]]:
    """Return the entries of a glossary: each word, which is a heading, and the text below it."""
    _, *parts = re.split(r"^### (.+)\n", page.read_text(), flags=re.MULTILINE)
    return list(zip(parts[::2], (text.strip() for text in parts[1::2]), strict=True))


def code_of(page: Path) -> list[str]:
    """Return all that a page shows as code: blocks, and pieces of a line."""
    text = page.read_text()
    inline = re.findall(r"`([^`\n]+)`", re.sub(r"^```.*?^```$", "", text, flags=re.M | re.S))
    return [block.text for block in fenced(page)] + inline


def bars_of(drawing: Path) -> dict[str | None, tuple[float, float]]:
    """Return where each named bar of a drawing begins, and how wide it is."""
    return {
        bar.get("id"): (float(bar.get("x", "")), float(bar.get("width", "")))
        for bar in ElementTree.parse(drawing).iterfind(f".//{SVG}rect[@id]")
    }


def anchors(page: Path) -> set[str]:
    """Return the anchors that GitHub makes of a page's headings."""
    headings = re.findall(r"^#+ (.+)$", page.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}
