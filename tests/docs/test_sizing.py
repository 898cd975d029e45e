"""The formulas and tables of docs/sizing.md are those of bench/demand.py; its sums agree with the core."""

from math import isclose, log

import pytest

from bench import demand
from bench.demand import Node
from docs import sizing
from supervisor.core.jitter import JITTER_MAX
from supervisor.core.lease import lease_of
from supervisor.core.lock.base import WAIT_S
from supervisor.core.settings import ItemSettings


@pytest.mark.long
def test_the_tables_are_made_from_the_formulas() -> None:
    """After a change of the formulas: python -m docs.sizing --write"""
    page = sizing.PAGE.read_text()
    assert sizing.page(page) == page
    for make in sizing.BLOCKS.values():
        assert f"\n{make()}\n" in page


@pytest.mark.parametrize("settings", [*sizing.SETTINGS.values(), sizing.semaphore()])
@pytest.mark.parametrize("held", [0.0, 0.25, 1.0])
def test_the_sums_on_the_page_are_those_of_the_core(settings: ItemSettings, held: float) -> None:
    """The page names the sums with symbols; here a contender itself renews and reads."""
    load = demand.of_node(Node(settings, 1, 5, held))
    ttl_s, interval_s = settings.session.ttl_s, lease_of(settings).interval_s
    assert ttl_s is not None
    pace, watch_s = -log(1 - JITTER_MAX) / JITTER_MAX, WAIT_S * (1 + 1 / 32)
    waits = 1 - held
    assert isclose(load.renewals, pace * (3 * held + 2 * waits) / ttl_s, rel_tol=1e-4)
    assert isclose(load.reads, pace * held / interval_s, rel_tol=1e-4)
    assert isclose(load.watches, 1 / watch_s)
    assert isclose(load.consistent, load.reads + held / watch_s)
    assert load.sessions == load.queries == 1


def test_a_file_of_many_elections_shares_queries_and_keeps_its_sessions() -> None:
    load = demand.of_node(Node(sizing.DEFAULTS, 1000, 5, 0.2))
    assert load.sessions == 1000 and load.queries <= 64
    assert demand.groups_of(Node(sizing.DEFAULTS, 64, 5, 0.2)) == ([], [])
