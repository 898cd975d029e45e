"""The values of arguments: each function parses what was typed, or raises ArgumentTypeError."""

import os
import re
from argparse import ArgumentTypeError
from collections.abc import Callable
from pathlib import Path
from typing import Any

CHECKS_MAX = 32  # of a session, as the schema has it
TTL_S_MAX = 86_400.0  # Consul's own bound
LOCK_DELAY_S_MAX = 60.0  # Consul applies no more
EVERY_S_MAX = 8760 * 3600.0  # a year
TIMEOUT_S_MAX = 86_400.0  # of a command that waits; a script that waits for longer should do so in a loop
_KEY_SEGMENT = r"(?!\.\.?(/|$))[A-Za-z0-9,_.-]+"


def duration_s(text: str) -> float:
    from supervisor.config.formats.durations import parse_duration

    try:
        return parse_duration(text)
    except ValueError:
        raise ArgumentTypeError(f"invalid duration {text}: write 500ms, 1s or 1m30s") from None


def _matching(pattern: str, why_not: str, made: Callable[[str], Any] = str) -> Callable[[str], Any]:
    """Return the parser of texts that match the pattern. ``made``: what is made of such a text."""

    def parse(text: str) -> Any:
        if not re.fullmatch(pattern, text):
            raise ArgumentTypeError(why_not.format(text))
        return made(text)

    return parse


def _lasting(least_s: float, most_s: float, why_not: str) -> Callable[[str], float]:
    """Return the parser of durations within these bounds."""

    def parse(text: str) -> float:
        if not least_s <= (length_s := duration_s(text)) <= most_s:
            raise ArgumentTypeError(why_not.format(text))
        return length_s

    return parse


key = _matching(
    f"{_KEY_SEGMENT}(/{_KEY_SEGMENT})*",
    "invalid key: use letters, digits and ,_.- in segments between single slashes",
)
session = _matching(
    r"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}", "invalid session: an id of Consul is a UUID"
)
index = _matching(r"[0-9]{1,20}", "invalid index: must be a number from 0", int)
limit = _matching(r"[1-9][0-9]{0,3}|10000", "invalid limit: must be a number from 1 to 10000", int)
suspicion_mult = _matching(r"[1-9][0-9]?", "invalid suspicion_mult: must be a number from 1 to 99", int)
speed = _matching(
    r"(?!0+(\.|$))[0-9]{1,4}(\.[0-9]{1,3})?", "invalid speed {}: must be a number from 1 to 9999", float
)
timeout_s = _lasting(0.0, TIMEOUT_S_MAX, "invalid duration {}: a day at most")
every_s = _lasting(1.0, EVERY_S_MAX, "invalid period {}: from 1s to 8760h")
outage_s = _lasting(60.0, 86400.0, "invalid duration {}: from 1m to 24h")
probe_interval_s = _lasting(0.01, 60.0, "invalid duration {}: from 10ms to 1m")
ttl_s = _lasting(1.0, TTL_S_MAX, "invalid TTL {}: from 1s to 24h")
lock_delay_s = _lasting(
    0.0, LOCK_DELAY_S_MAX, "invalid lock-delay {}: a minute at most, which is as long as Consul's"
)


def wait_s(text: str) -> float:
    """Return the seconds that a command waits at most. A plain 0 needs no unit."""
    return 0.0 if text == "0" else timeout_s(text)


def rest_s(text: str) -> float:
    from supervisor.reporting.control.protocol import REST_S_MAX

    return _lasting(0.0, REST_S_MAX, "invalid duration {}: a day at most; use `pause` for longer")(text)


def pause_s(text: str) -> float:
    from supervisor.reporting.control.protocol import PAUSE_S_MAX

    return _lasting(1.0, PAUSE_S_MAX, "invalid duration {}: from 1s to 720h")(text)


def name(text: str) -> str:
    from supervisor.reporting.control.protocol import NAME

    why_not = "invalid name: use at most 63 lower-case letters, digits, _ or -"
    return str(_matching(NAME.pattern, why_not)(text))


def node(text: str) -> str:
    from supervisor.reporting.control.protocol import NODE

    why_not = "invalid node: must be a name without blanks, or a session's id"
    return str(_matching(NODE.pattern, why_not)(text))


def socket(text: str) -> str:
    from supervisor.config.places import PATH_BYTES_MAX

    path = str(Path(text).absolute())
    if len(os.fsencode(path)) > PATH_BYTES_MAX:
        raise ArgumentTypeError(f"invalid path: a socket's path has at most {PATH_BYTES_MAX} bytes")
    return path


def port(text: str) -> int:
    """Return a port of TCP. 0 lets the system choose a port."""
    if not text.isascii() or not text.isdecimal() or int(text) > 65535:
        raise ArgumentTypeError(f"invalid port {text}: must be a number from 0 to 65535")
    return int(text)


def checks(text: str) -> tuple[str, ...]:
    """Return the ids of Consul's checks in a list with commas, each of them once."""
    found = tuple(dict.fromkeys(text.split(",")))
    if len(found) > CHECKS_MAX or not all(
        re.fullmatch(r"(?!.*\$\{)[\x21-\x7e]{1,256}", each) for each in found
    ):
        raise ArgumentTypeError(f"invalid checks: at most {CHECKS_MAX} ids of checks, separated by commas")
    return found


def note(text: str) -> str:
    from supervisor.reporting.control.protocol import NOTE_CHARS_MAX, note_of

    note = note_of(text)
    if note is None:
        raise ArgumentTypeError(f"invalid reason: one line of at most {NOTE_CHARS_MAX} printable characters")
    return note
