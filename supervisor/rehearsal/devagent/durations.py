"""Durations as Go's programs write them, such as ``90s`` or ``1h30m``, in whole nanoseconds."""

import re
from decimal import Decimal

SECOND_NS = 1_000_000_000
CHARS_MAX = 64  # a longer one would be a number of thousands of digits
_UNITS_NS = {
    "ns": 1,
    "us": 1_000,
    "µs": 1_000,
    "ms": 1_000_000,
    "s": SECOND_NS,
    "m": 60 * SECOND_NS,
    "h": 3600 * SECOND_NS,
}
_TERM = re.compile(r"([0-9]+\.?[0-9]*|\.[0-9]+)(ns|us|µs|ms|s|m|h)")
_DURATION = re.compile(rf"(?:{_TERM.pattern})+|0")


def parse_ns(text: str) -> int:
    """Return the nanoseconds of a duration. Raises ValueError when the text is no duration."""
    terms = text[1:] if text[:1] in ("-", "+") else text
    if len(text) > CHARS_MAX or not _DURATION.fullmatch(terms):
        raise ValueError(f'time: invalid duration "{text[:CHARS_MAX]}"')
    total_ns = sum(int(Decimal(number) * _UNITS_NS[unit]) for number, unit in _TERM.findall(terms))
    return -total_ns if text.startswith("-") else total_ns
