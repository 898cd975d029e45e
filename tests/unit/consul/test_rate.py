"""A query that is repeated at each change: the first ones are sent at once, the next at a limited rate."""

import pytest

from supervisor.adapters.consul.rate import BURST, EVERY_S, RateLimit


def test_the_first_queries_in_a_row_do_not_wait() -> None:
    rate = RateLimit()
    assert [rate.wait_s(7.0) for _ in range(BURST)] == [0.0] * BURST
    assert rate.wait_s(7.0) == pytest.approx(EVERY_S)


def test_after_a_calm_second_the_next_queries_do_not_wait() -> None:
    rate = RateLimit()
    for _ in range(2 * BURST):
        rate.wait_s(0.0)
    assert [rate.wait_s(2 * BURST * EVERY_S) for _ in range(BURST)] == [0.0] * BURST
