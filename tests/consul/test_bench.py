"""The bench's own instruments: their counts and their refusals. The measured figures have no test."""

import json
import re
import time
from pathlib import Path

import pytest

from bench import loss, page
from bench.__main__ import ROWS
from bench.agent_log import LOGGED, late_ms, renewals
from bench.figures import Figure
from bench.machines import CUT_OFF, KEEPALIVED, KILLED, LEADER_CHANGE, Sample, elections
from supervisor.config import load
from tests.support.consul import Agent
from tests.support.pages import SAFETY, rows


def test_renewals_are_found_in_consuls_own_log(tmp_path: Path) -> None:
    """The times of the given sessions are those at which Consul got the renewals, in their order."""
    with Agent(tmp_path, config=LOGGED) as agent:
        first, other = agent.session_create(TTL="10s"), agent.session_create(TTL="10s")
        began = time.time()
        for session in (first, other, first):
            agent.call("PUT", f"/session/renew/{session}")
        ended = time.time()
        (times,) = renewals(agent.log, {first})
    assert len(times) == 2
    assert began <= times[0] < times[1] <= ended


def test_a_renewal_is_late_by_what_is_beyond_the_pace_of_its_session() -> None:
    """A renewal counts in the window in which it came, and the first two of a session cannot be late."""
    times = [[0.5, 1.0, 4.0, 7.5, 10.5], [2.0], [3.0, 5.0, 9.0]]
    assert late_ms(times, [(0.0, 8.0)]) == [0.0, 500.0]
    assert late_ms(times, [(0.0, 2.0), (10.0, 11.0)]) == [0.0]


# --- a lost machine ------------------------------------------------------------------------------------


def warnings(folder: Path, stop_timeout: str = "500ms", **session: str) -> list[str]:
    """Return the keys of which `check` warns in the quick file with these settings changed."""
    quick = elections(lambda name: ["/bin/true"])["quick"]
    quick["run"]["stop_timeout"] = stop_timeout
    quick["session"] = {**quick["session"], **session}
    path = folder / "config.yaml"
    path.write_text(json.dumps({"consul": {"leader_change": LEADER_CHANGE}, "elections": {"app": quick}}))
    found = load(path, loss.WATCHDOG, "node").warnings
    return [warning.path.rpartition(".")[2] for warning in found]


def test_no_file_with_a_shorter_failover_is_without_a_warning(tmp_path: Path) -> None:
    """The lock_delay of the quick file is in whole seconds, and its application may stop at once."""
    assert loss.promises(tmp_path) == {"defaults": 50, "defaults-serfhealth": 50, "quick": 27, "quickest": 13}
    assert warnings(tmp_path) == []
    assert warnings(tmp_path, lock_delay="6s") == ["lock_delay", "lock_delay"]  # silence and watchdog
    assert warnings(tmp_path, ttl="9s") == ["ttl"]


def test_a_lost_machine_is_measured_by_the_slowest_take_over_and_the_longest_overlap() -> None:
    killed = [Sample(KILLED, "defaults", next_s, 0.0) for next_s in (40.0, 51.0, 45.0)]
    median, worst = loss.figures_of(killed, 50.0)
    assert (median.value, median.missed, worst.value, worst.missed) == (45.0, False, 51.0, True)
    cut_off = [Sample(CUT_OFF, KEEPALIVED, 3.5, 60.0), Sample(CUT_OFF, KEEPALIVED, 4.0, 60.0)]
    assert [figure.value for figure in loss.figures_of(cut_off, None)[2:]] == [60.0, 56.5]
    assert loss.figures_of([Sample(CUT_OFF, "defaults", 45.0, 23.0)], 50.0)[3].value == 0.0


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


def test_only_measured_rows_change_on_the_page() -> None:
    before = "# Title\n\nWords.\n\n## many\n\nold\n\n## start\n\nkept\n"
    new = page.section("many", ROWS["many"], "today", [Figure("r", "w", 1, "ms", 2)])
    after = page.with_sections(before, {"many": new}, ("many", "herd", "start"))
    assert after.startswith("# Title\n\nWords.\n\n## many\n\nA thousand") and "old" not in after
    assert after.endswith("| r | w | 1 | ms | ≤ 2 | ok |\n\n## start\n\nkept\n")
    assert page.with_sections(after, {"many": new}, ("many", "herd", "start")) == after
