"""Lines of output: bounded, printable and counted, with any input."""

import asyncio
import os
import subprocess
import time
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from supervisor.adapters.hooks.output import (
    DRAIN_PAUSE_S,
    LINE_BYTES_MAX,
    LINES_MAX,
    LINES_WINDOW_S,
    Drain,
    LineBudget,
    Lines,
    printable,
)
from tests.support.patience import PATIENCE_S


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def lines_of(emit: Callable[[str], None], clock: Clock | None = None) -> Lines:
    return Lines(emit, LineBudget(clock or Clock()))


@pytest.mark.parametrize("size", [1, 2, 3, 5, 100])
def test_lines_do_not_depend_on_the_pieces_in_which_bytes_arrive(size: int) -> None:
    data = "one\n\ntwo é\r\nlast without newline".encode()
    seen: list[str] = []
    lines = lines_of(seen.append)
    for start in range(0, len(data), size):
        lines.feed(data[start : start + size])
    assert seen == ["one", "", "two é"]
    lines.close()
    assert seen == ["one", "", "two é", "last without newline"]


def test_a_long_line_is_cut_and_says_by_how_much() -> None:
    seen: list[str] = []
    lines = lines_of(seen.append)
    for _ in range(100):
        lines.feed(b"x" * 1000)
    lines.feed(b"\nnext\n")
    assert seen == ["x" * LINE_BYTES_MAX + f" … ({100_000 - LINE_BYTES_MAX} bytes cut)", "next"]


def test_lines_beyond_the_budget_are_dropped_and_counted() -> None:
    clock = Clock()
    seen: list[str] = []
    lines = lines_of(seen.append, clock)
    lines.feed(b"line\n" * (LINES_MAX + 20) + b"begun")
    lines.feed(b" and ended\n")
    assert seen == ["line"] * LINES_MAX
    clock.now = LINES_WINDOW_S
    lines.feed(b"after\n")
    assert seen[LINES_MAX:] == ["… 21 lines dropped: more than 1000 in 10s", "after"]


def test_dropped_lines_are_counted_at_the_end_of_the_output() -> None:
    seen: list[str] = []
    lines = lines_of(seen.append)
    lines.feed(b"line\n" * (LINES_MAX + 1) + b"last")
    lines.close()
    assert seen[LINES_MAX:] == ["… 2 lines dropped: more than 1000 in 10s"]


def test_both_streams_of_an_attempt_share_one_budget() -> None:
    seen: list[str] = []
    budget = LineBudget(Clock())
    out, err = Lines(seen.append, budget), Lines(seen.append, budget)
    out.feed(b"out\n" * (LINES_MAX - 1))
    err.feed(b"err\n" * 10)
    assert seen[-1] == "err" and len(seen) == LINES_MAX


def test_dropped_lines_are_counted_for_their_own_stream() -> None:
    seen: dict[str, list[str]] = {"out": [], "err": []}
    budget = LineBudget(Clock())
    out, err = (Lines(lines.append, budget) for lines in seen.values())
    out.feed(b"out\n" * (LINES_MAX + 20))
    err.feed(b"err\n")
    err.close()
    out.close()
    assert seen["err"] == ["… 1 line dropped: more than 1000 in 10s"]
    assert seen["out"][LINES_MAX:] == ["… 20 lines dropped: more than 1000 in 10s"]


def test_control_and_invisible_characters_of_a_line_are_escaped() -> None:
    raw = b"\x1b[31mred\x1b[0m\ttab \x00 \x7f \xc2\x9b \xe2\x80\xae \xe2\x80\xa8 \xff end"
    assert printable(raw) == "\\x1b[31mred\\x1b[0m\ttab \\x00 \\x7f \\x9b \\u202e \\u2028 \ufffd end"


@given(st.lists(st.binary(max_size=9000), max_size=20))
def test_any_bytes_become_bounded_printable_lines(pieces: list[bytes]) -> None:
    seen: list[str] = []
    lines = lines_of(seen.append)
    for piece in pieces:
        lines.feed(piece)
        assert len(lines._line) <= LINE_BYTES_MAX
    lines.close()
    assert len(seen) <= LINES_MAX + 1
    for text in seen:
        assert len(text) <= 6 * LINE_BYTES_MAX + 40
        assert not any(ord(character) < 32 and character != "\t" for character in text)


class CountingLines(Lines):
    reads = 0

    def feed(self, data: bytes) -> None:
        self.reads += 1
        super().feed(data)


async def test_a_flood_of_output_is_read_at_a_limited_pace() -> None:
    """Reading all that a child can write would take a core, and other items need it."""
    lines = CountingLines(lambda text: None, LineBudget(Clock()))
    with subprocess.Popen(["yes"], stdout=subprocess.PIPE, bufsize=0) as child:
        assert child.stdout is not None
        began_at = time.monotonic()
        drain = Drain(os.dup(child.stdout.fileno()), lines)
        async with asyncio.timeout(PATIENCE_S):
            while not lines.reads or time.monotonic() < began_at + 0.3:
                await asyncio.sleep(0.01)
        paced = (time.monotonic() - began_at) / DRAIN_PAUSE_S
        assert 0 < lines.reads <= paced + LINES_MAX
        child.kill()
        drain.close()
