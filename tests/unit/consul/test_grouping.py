"""Which keys share one query."""

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from supervisor.adapters.consul.shared.grouping import (
    READ_TOGETHER_MAX,
    WATCHES_MAX,
    read_prefixes,
    watch_prefixes,
)

KEYS = st.sets(st.text("ab/-", min_size=1, max_size=8), max_size=60)


@given(KEYS, st.integers(4, 30))
def test_a_key_that_shares_a_query_begins_with_its_prefix_which_is_never_blank(
    keys: set[str], at_most: int
) -> None:
    for prefixes in (watch_prefixes(keys, at_most), read_prefixes(keys, at_most)):
        assert all(prefix and key.startswith(prefix) for key, prefix in prefixes.items())


@given(KEYS, st.integers(4, 30))
def test_one_read_concerns_a_few_keys_and_never_a_key_twice(keys: set[str], at_most: int) -> None:
    prefixes = read_prefixes(keys, at_most)
    together = Counter(prefixes.values())
    assert all(1 < number <= READ_TOGETHER_MAX for number in together.values())
    assert bool(prefixes) <= (len(keys) > at_most)


@given(KEYS, st.integers(4, 30))
def test_the_number_of_queries_is_bounded(keys: set[str], at_most: int) -> None:
    prefixes = watch_prefixes(keys, at_most)
    assert len(set(prefixes.values())) + len(keys - prefixes.keys()) <= at_most


@given(KEYS, st.integers(4, 30))
def test_no_query_is_shared_when_each_key_can_have_its_own(keys: set[str], at_most: int) -> None:
    assert bool(watch_prefixes(keys, at_most)) == (len(keys) > at_most)


def test_keys_without_a_common_prefix_are_never_queried_with_a_blank_one() -> None:
    keys = {f"{first}{second}" for first in "abcdefgh" for second in "xy"}
    assert set(watch_prefixes(keys, 4).values()) == set("abcdefgh")
    assert set(read_prefixes(keys, 4).values()) == set("abcdefgh")


def test_a_thousand_default_keys_are_queried_in_small_groups() -> None:
    keys = {f"service/app-{number:04}/leader" for number in range(1000)}
    prefixes = watch_prefixes(keys, WATCHES_MAX)
    sizes = [list(prefixes.values()).count(prefix) for prefix in set(prefixes.values())]
    assert len(sizes) <= WATCHES_MAX and max(sizes) <= 100


def test_a_thousand_default_keys_are_read_by_ten() -> None:
    keys = {f"service/app-{number:04}/leader" for number in range(1000)}
    together = Counter(read_prefixes(keys, WATCHES_MAX).values())
    assert len(together) == 100 and set(together.values()) == {10}
