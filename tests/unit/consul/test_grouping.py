"""Which keys share one query."""

from hypothesis import given
from hypothesis import strategies as st

from supervisor.consul.shared import WATCHES_MAX, prefixes_for

KEYS = st.sets(st.text("ab/-", min_size=1, max_size=8), max_size=60)


@given(KEYS, st.integers(4, 30))
def test_a_key_that_shares_a_query_begins_with_its_prefix_which_is_never_blank(
    keys: set[str], at_most: int
) -> None:
    prefixes = prefixes_for(keys, at_most)
    assert all(prefix and key.startswith(prefix) for key, prefix in prefixes.items())


@given(KEYS, st.integers(4, 30))
def test_the_number_of_queries_is_bounded(keys: set[str], at_most: int) -> None:
    prefixes = prefixes_for(keys, at_most)
    assert len(set(prefixes.values())) + len(keys - prefixes.keys()) <= at_most


@given(KEYS, st.integers(4, 30))
def test_no_query_is_shared_when_each_key_can_have_its_own(keys: set[str], at_most: int) -> None:
    assert bool(prefixes_for(keys, at_most)) == (len(keys) > at_most)


def test_keys_without_a_common_prefix_are_never_queried_with_a_blank_one() -> None:
    keys = {f"{first}{second}" for first in "abcdefgh" for second in "xy"}
    assert set(prefixes_for(keys, 4).values()) == set("abcdefgh")


def test_a_thousand_default_keys_are_queried_in_small_groups() -> None:
    keys = {f"service/app-{number:04}/leader" for number in range(1000)}
    prefixes = prefixes_for(keys, WATCHES_MAX)
    sizes = [list(prefixes.values()).count(prefix) for prefix in set(prefixes.values())]
    assert len(sizes) <= WATCHES_MAX and max(sizes) <= 100
