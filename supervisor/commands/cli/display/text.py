"""Text in columns of a terminal: escaped, measured, truncated and padded, so that no line is too long.

Values that come from Consul may be anything. ``escape`` replaces each character that a terminal would obey.
It also replaces those that reverse or join letters, because a cell must have the width that was computed.
"""

from collections.abc import Sequence
from textwrap import wrap
from unicodedata import combining, east_asian_width

ELLIPSIS = "…"
_NOTE_COLUMNS_MIN = 20
_EMOJI_FORM = "\ufe0f"  # makes the letter before it two columns wide on some terminals


def escape(text: str) -> str:
    """Return the text as one line, with unprintable characters as Python writes them: ``\\x1b``."""
    return "".join(letter if letter.isprintable() else ascii(letter)[1:-1] for letter in text)


def width(text: str) -> int:
    """Return how many columns an escaped text takes at most."""
    return sum(map(_columns, text))


def _columns(letter: str) -> int:
    if letter == _EMOJI_FORM:
        return 1
    if combining(letter):
        return 0
    return 2 if east_asian_width(letter) in "WF" else 1


def truncate(text: str, columns: int) -> str:
    """Return the text, or its beginning and an ellipsis, in at most ``columns`` columns."""
    used, end = 0, 0
    for at, letter in enumerate(text):
        used += _columns(letter)
        if used > columns:
            return text[:end] + ELLIPSIS if columns > 0 else ""
        if used < columns:
            end = at + 1
    return text


def fit(text: str, room: int | None) -> str:
    """Return the text in at most ``room`` columns. None: the whole text."""
    return text if room is None else truncate(text, room)


def wrapped(notes: Sequence[str], room: int | None) -> list[str]:
    """Return each note in as many lines as it needs, because a note must be shown whole."""
    if room is None:
        return list(notes)
    wide = max(room, _NOTE_COLUMNS_MIN)
    return [truncate(line, room) for note in notes for line in wrap(note, wide, subsequent_indent="  ")]


def pad(text: str, columns: int) -> str:
    """Return the text in exactly ``columns`` columns, truncated or filled with spaces."""
    shown = truncate(text, columns)
    return shown + " " * (columns - width(shown))


def shrink_to_fit(natural: Sequence[int], least: Sequence[int], room: int) -> list[int] | None:
    """Return widths whose sum is at most ``room`` columns.

    The widest column shrinks first, and no column below its ``least``. None: even the least widths need more
    room.
    """
    widths = list(natural)
    while sum(widths) > room:
        spare = [at for at, columns in enumerate(widths) if columns > least[at]]
        if not spare:
            return None
        widths[max(spare, key=lambda at: widths[at])] -= 1
    return widths
