"""Go's ways with numbers, durations, UUIDs and JSON, where Consul's answers show them.

Pure functions of text. The words of their errors are Go's, for clients match them. Durations are
whole nanoseconds, as Go has them.
"""

import json
import re
from decimal import Decimal
from typing import Any

SECOND_NS = 1_000_000_000
INT64_MAX = 2**63 - 1
UINT64_MAX = 2**64 - 1
_UNITS_NS = {
    "ns": 1,
    "us": 1_000,
    "µs": 1_000,
    "μs": 1_000,
    "ms": 1_000_000,
    "s": SECOND_NS,
    "m": 60 * SECOND_NS,
    "h": 3600 * SECOND_NS,
}
_TERM = re.compile(r"(\d*)(?:\.(\d*))?")
_UNIT = re.compile(r"[^\d.]+")


def quote(text: str) -> str:
    """As ``%q`` prints it, for the characters that keys and ids are made of."""
    return json.dumps(text, ensure_ascii=False)


def parse_uint(text: str) -> int:
    """``strconv.ParseUint(text, 10, 64)``. Raises ValueError with Go's words."""
    if not re.fullmatch(r"[0-9]+", text, re.ASCII):
        raise ValueError(f"strconv.ParseUint: parsing {quote(text)}: invalid syntax")
    if int(text[:40]) > UINT64_MAX:
        raise ValueError(f"strconv.ParseUint: parsing {quote(text)}: value out of range")
    return int(text)


def parse_duration_ns(text: str) -> int:
    """``time.ParseDuration``. Raises ValueError with Go's words."""
    invalid = ValueError(f"time: invalid duration {quote(text)}")
    sign = -1 if text.startswith("-") else 1
    rest = text[1:] if text[:1] in ("-", "+") else text
    if rest == "0":
        return 0
    if not rest:
        raise invalid
    total_ns = 0
    while rest:
        number = _TERM.match(rest)
        assert number is not None, "it matches nothing, too"
        if not number[1] and not number[2]:
            raise invalid
        rest = rest[number.end() :]
        unit = _UNIT.match(rest)
        if unit is None:
            raise ValueError(f"time: missing unit in duration {quote(text)}")
        if unit[0] not in _UNITS_NS:
            raise ValueError(f"time: unknown unit {quote(unit[0])} in duration {quote(text)}")
        rest = rest[unit.end() :]
        total_ns += int(Decimal(f"{number[1] or 0}.{number[2] or 0}") * _UNITS_NS[unit[0]])
        if total_ns > INT64_MAX:
            raise invalid
    return sign * total_ns


def format_duration(duration_ns: int) -> str:
    """A duration of a second or more as Go prints it: ``1s``, ``1.5s``, ``24h0m0s``."""
    minutes, rest_ns = divmod(duration_ns, 60 * SECOND_NS)
    seconds = f"{Decimal(rest_ns) / SECOND_NS:f}s"
    hours, minutes = divmod(minutes, 60)
    if hours:
        return f"{hours}h{minutes}m{seconds}"
    return f"{minutes}m{seconds}" if minutes else seconds


def session_id(text: str) -> str:
    """The id under which Consul looks a session up. Raises ValueError for what is no UUID."""
    if len(text.encode("utf-8", "surrogateescape")) != 36:
        raise ValueError("UUID must be 36 characters")
    if text.count("-") > 4:
        raise ValueError(f'UUID should have maximum of 4 "-"; got {text.count("-")}')
    digits = text.replace("-", "")
    if len(digits) % 2:
        raise ValueError("Input (without hyphens) must be even length")
    for character in digits:
        if character not in "0123456789abcdefABCDEF":
            code = f"U+{ord(character):04X} '{character}'"
            raise ValueError(f"Invalid UUID: encoding/hex: invalid byte: {code}")
    return digits.lower()


def dump_json(value: object, pretty: bool) -> bytes:
    """As Go's encoder writes it: compact, or by four spaces; what HTML would mind is escaped."""
    if pretty:
        text = json.dumps(value, ensure_ascii=False, indent=4) + "\n"
    else:
        text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    for character in "<>&\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return re.sub("[\udc80-\udcff]", "\\\\ufffd", text).encode()


def load_json(body: bytes) -> Any:
    """The first JSON value of the body: what follows it is ignored. Raises ValueError."""
    text = body.decode("utf-8", "replace").lstrip(" \t\r\n")
    if not text:
        raise ValueError("EOF")
    try:
        return json.JSONDecoder().raw_decode(text)[0]
    except json.JSONDecodeError as error:
        at_end = error.pos >= len(text) or error.msg.startswith("Unterminated")
        raise ValueError("unexpected EOF" if at_end else _invalid_character(text, error.pos)) from None
    except RecursionError:
        raise ValueError("exceeded max depth") from None


def _invalid_character(text: str, position: int) -> str:
    return f"invalid character {text[position]!r} looking for beginning of value"
