"""What the pages for readers say, taken from their Markdown: blocks, tables, code, anchors."""

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
README = ROOT / "README.md"
HOOKS = ROOT / "docs" / "hooks.md"
DOCS = sorted((ROOT / "docs").glob("*.md"))
PAGES = [README, *DOCS, ROOT / "CHANGELOG.md"]


def name(page: Path) -> str:
    return str(page.relative_to(ROOT))


def blocks(page: Path, language: str) -> list[str]:
    """The contents of a page's fenced blocks of that language."""
    return re.findall(rf"^```{language}\n(.*?)^```$", page.read_text(), re.MULTILINE | re.DOTALL)


def rows(page: Path, heading: str) -> list[list[str]]:
    """The cells of the table whose first column is headed so, without the heading."""
    table = page.read_text().partition(f"\n| {heading} |")[2].partition("\n\n")[0]
    assert table, f"{name(page)} has no table of {heading}"
    lines = table.splitlines()[2:]
    return [[cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]] for line in lines]


def first_codes(page: Path, heading: str) -> list[str]:
    """What stands as code in the first column of that table."""
    return [re.sub(r"`(.*?)`.*", r"\1", row[0]) for row in rows(page, heading)]


def code_of(page: Path) -> list[str]:
    """All that a page shows as code: blocks, and pieces of a line."""
    text = page.read_text()
    fenced = re.findall(r"^```\w*\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    return fenced + re.findall(r"`([^`\n]+)`", re.sub(r"^```.*?^```$", "", text, flags=re.M | re.S))


def anchors(page: Path) -> set[str]:
    """The anchors that GitHub makes of a page's headings."""
    headings = re.findall(r"^#+ (.+)$", page.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}
