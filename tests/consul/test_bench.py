"""The page of the bench has its rows and words; the measured figures have no test."""

import re
from pathlib import Path

import pytest

from bench import loss, pacemaker, page
from bench.__main__ import ROWS
from tests.support.pages import SAFETY, rows


def test_the_page_of_safety_has_the_promises_of_check(tmp_path: Path) -> None:
    shown = {re.sub(r"`(.*?)`.*", r"\1", row[0]): row[1] for row in rows(SAFETY, "file")}
    promised = {name: f"{promised_s:g} s" for name, promised_s in loss.promises(tmp_path).items()}
    assert {name: cell for name, cell in shown.items() if cell != "–"} == promised


@pytest.mark.parametrize("name", ROWS)
def test_the_page_describes_each_row_as_the_bench_does(name: str) -> None:
    """Its figures are those of the last run with ``--page``, and its words must be those of the row."""
    text = page.PAGE.read_text()
    assert f"\n## {name}\n\n{page.words(ROWS[name])}\n\n20" in text
    assert re.search(rf"\n## {name}\n(?:(?!\n## ).)*\n\| row \| figure \|", text, re.DOTALL)


def test_the_page_describes_the_target_of_pacemaker_as_the_bench_does() -> None:
    words = page.words(pacemaker.measure)
    assert f"\n## {pacemaker.NAME}\n\n{words}\n\n20" in page.PAGE.read_text()


def test_the_page_has_every_row_and_nothing_else() -> None:
    shown = re.findall(r"^## (.*)$", page.PAGE.read_text(), re.MULTILINE)
    assert shown == [*ROWS, pacemaker.NAME]
