"""The bench's own instruments: their counts and their refusals. The measured figures have no test."""

import json
import re
from pathlib import Path

import pytest

from bench import loss, page
from bench.__main__ import ROWS
from bench.machines import LEADER_CHANGE, elections
from tests.support.configured import loaded
from tests.support.pages import SAFETY, rows

# --- a lost machine ------------------------------------------------------------------------------------


def warnings(folder: Path, stop_timeout: str = "500ms", **session: str) -> list[str]:
    """Return the keys of which `check` warns in the quick file with these settings changed."""
    quick = elections(lambda name: ["/bin/true"])["quick"]
    quick["run"]["stop_timeout"] = stop_timeout
    quick["session"] = {**quick["session"], **session}
    found = loaded(
        folder,
        json.dumps({"consul": {"leader_change": LEADER_CHANGE}, "elections": {"app": quick}}),
        loss.WATCHDOG,
        "node",
    ).warnings
    return [warning.path.rpartition(".")[2] for warning in found]


def test_no_file_with_a_shorter_failover_is_without_a_warning(tmp_path: Path) -> None:
    """The lock_delay of the quick file is in whole seconds, and its application may stop at once."""
    assert loss.promises(tmp_path) == {"defaults": 50, "defaults-serfhealth": 50, "quick": 27, "quickest": 13}
    assert warnings(tmp_path) == []
    assert warnings(tmp_path, lock_delay="6s") == ["lock_delay", "lock_delay"]  # silence and watchdog
    assert warnings(tmp_path, ttl="9s") == ["ttl"]


def test_the_page_of_safety_has_the_promises_of_check(tmp_path: Path) -> None:
    shown = {re.sub(r"`(.*?)`.*", r"\1", row[0]): row[1] for row in rows(SAFETY, "file")}
    promised = {name: f"{promised_s:g} s" for name, promised_s in loss.promises(tmp_path).items()}
    assert {name: cell for name, cell in shown.items() if cell != "–"} == promised


# --- the page of figures ------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ROWS)
def test_the_page_describes_each_row_as_the_bench_does(name: str) -> None:
    """Its figures are those of the last run with ``--page``, and its words must be those of the row."""
    text = page.PAGE.read_text()
    assert f"\n## {name}\n\n{page.words(ROWS[name])}\n\n20" in text
    assert re.search(rf"\n## {name}\n(?:(?!\n## ).)*\n\| row \| figure \|", text, re.DOTALL)


def test_the_page_has_every_row_and_nothing_else() -> None:
    assert re.findall(r"^## (.*)$", page.PAGE.read_text(), re.MULTILINE) == list(ROWS)
