"""Text in columns of a terminal: escaped, measured, cut and fitted; no line is ever too long.

What comes from Consul may be anything: nothing that a terminal would obey gets through, nor what
turns or joins letters, for a cell must have the width that was reckoned.
"""

from collections.abc import Sequence
from unicodedata import combining, east_asian_width

ELLIPSIS = "…"
_EMOJI_FORM = "\ufe0f"  # makes the letter before it two columns wide, on some terminals


def escape(text: str) -> str:
    """One line without control characters: they are shown as Python writes them, ``\\x1b``."""
    return "".join(letter if letter.isprintable() else ascii(letter)[1:-1] for letter in text)


def width(text: str) -> int:
    """The columns that a plain text takes; too many rather than too few."""
    return sum(map(_columns, text))


def _columns(letter: str) -> int:
    if letter == _EMOJI_FORM:
        return 1
    if combining(letter):
        return 0
    return 2 if east_asian_width(letter) in "WF" else 1


def truncate(text: str, columns: int) -> str:
    """The text, or its begin and an ellipsis, in so many columns at most."""
    used, end = 0, 0
    for at, letter in enumerate(text):
        used += _columns(letter)
        if used > columns:
            return text[:end] + ELLIPSIS if columns > 0 else ""
        if used < columns:
            end = at + 1
    return text


def pad(text: str, columns: int) -> str:
    """The text in exactly so many columns."""
    shown = truncate(text, columns)
    return shown + " " * (columns - width(shown))


def shrink_to_fit(natural: Sequence[int], least: Sequence[int], room: int) -> list[int] | None:
    """Widths of columns that need ``room`` at most: the widest gives first, none below its least.

    None when even the least of all is too much.
    """
    widths = list(natural)
    while sum(widths) > room:
        spare = [at for at, columns in enumerate(widths) if columns > least[at]]
        if not spare:
            return None
        widths[max(spare, key=lambda at: widths[at])] -= 1
    return widths
