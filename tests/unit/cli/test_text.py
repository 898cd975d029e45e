"""Text in columns: it holds no control characters, and every cell has the computed width."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from supervisor.commands.cli.display.text import ELLIPSIS, escape, pad, shrink_to_fit, truncate, width


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("a\x1b[2Jb", r"a\x1b[2Jb"),
        ("a\r\nb\tc", r"a\r\nb\tc"),
        ("\x07\x00\x7f\x9b", r"\x07\x00\x7f\x9b"),
        ("\u202egnp\u2066", r"\u202egnp\u2066"),
        ("\u200b\ufeff", r"\u200b\ufeff"),
        ("\ud800", r"\ud800"),
        ("é 日本 🙂", "é 日本 🙂"),
    ],
)
def test_control_characters_are_escaped(text: str, shown: str) -> None:
    assert escape(text) == shown


@pytest.mark.parametrize(
    ("text", "columns"),
    [("", 0), ("abc", 3), ("日本", 4), ("e\u0301", 1), ("ﾊ", 1), ("🙂", 2), ("❤\ufe0f", 2)],
)
def test_the_width_of_a_text_is_counted_in_columns(text: str, columns: int) -> None:
    assert width(text) == columns


@pytest.mark.parametrize(
    ("text", "columns", "shown"),
    [
        ("abc", 3, "abc"),
        ("abcd", 3, "ab…"),
        ("日本語", 6, "日本語"),
        ("日本語", 5, "日本…"),
        ("日本語", 4, "日…"),
        ("e\u0301e\u0301e\u0301", 2, "e\u0301…"),
        ("abc", 1, "…"),
        ("abc", 0, ""),
        ("", 0, ""),
    ],
)
def test_a_text_that_does_not_fit_is_truncated(text: str, columns: int, shown: str) -> None:
    assert truncate(text, columns) == shown


@given(st.text(max_size=60), st.integers(0, 40))
def test_a_cell_is_never_too_wide_and_always_printable(text: str, columns: int) -> None:
    shown = escape(text)
    assert shown.isprintable()
    assert width(truncate(shown, columns)) <= columns
    assert width(pad(shown, columns)) == columns
    assert truncate(shown, columns) == shown or truncate(shown, columns).rstrip(ELLIPSIS) in shown


@given(
    st.lists(st.tuples(st.integers(0, 80), st.integers(0, 80)), min_size=1, max_size=6), st.integers(0, 200)
)
def test_columns_are_shrunk_to_fit_unless_their_minimum_is_too_wide(
    sizes: list[tuple[int, int]], room: int
) -> None:
    natural, least = [max(pair) for pair in sizes], [min(pair) for pair in sizes]
    widths = shrink_to_fit(natural, least, room)
    if widths is None:
        assert sum(least) > room
    else:
        assert sum(widths) <= max(room, 0) or widths == natural
        assert all(low <= each <= high for low, each, high in zip(least, widths, natural, strict=True))
        assert widths == natural or sum(widths) == room


def test_the_widest_column_shrinks_first() -> None:
    assert shrink_to_fit([10, 30, 5], [5, 5, 5], 30) == [10, 15, 5]
    assert shrink_to_fit([10, 30, 5], [5, 5, 5], 20) == [7, 8, 5]
    assert shrink_to_fit([10, 30, 5], [5, 5, 5], 14) is None
