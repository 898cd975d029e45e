"""Judgements on the hooks' own lines that hold for semaphores; they know nothing of the product."""

from collections.abc import Sequence

from tests.consul.elections.records import Record, shown, tenures


def assert_at_most(records: Sequence[Record], name: str, limit: int) -> None:
    """No more than so many were between the begin of on_acquire and the end of on_lose at once."""
    spans = tenures(records, name)
    for begun in spans:
        acting = [each for each in spans if each.first <= begun.first <= each.last]
        nodes = [each.node for each in acting]
        assert len(acting) <= limit, f"{nodes} act at once, {limit} may:\n{shown(records)}"


def assert_tokens_grow(records: Sequence[Record], name: str) -> None:
    """Each tenure has a token of its own, the same all the time; one that begins after another has
    ended has a greater one."""
    spans = tenures(records, name)
    tokens = [each.token for each in spans]
    assert len(set(tokens)) == len(tokens) and 0 not in tokens, f"tokens {tokens}:\n{shown(records)}"
    for earlier in spans:
        for later in spans:
            if earlier.last < later.first:
                assert earlier.token < later.token, f"{earlier} and {later}:\n{shown(records)}"
    token_of = {each.session: each.token for each in spans}
    for record in records:
        if record.name == name and record.event in ("acquire", "lose"):
            assert record.token == token_of[record.session], f"{record}:\n{shown(records)}"
