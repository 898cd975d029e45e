"""The values of arguments: each function parses what was typed, or raises ArgumentTypeError."""

import os
import re
from argparse import ArgumentTypeError
from pathlib import Path

CHECKS_MAX = 32  # of a session, as the schema has it
TTL_S_MAX = 86_400.0  # Consul's own bound
LOCK_DELAY_S_MAX = 60.0  # Consul applies no more
EVERY_S_MAX = 8760 * 3600.0  # a year
TIMEOUT_S_MAX = 86_400.0  # of a command that waits; a script that waits for longer should do so in a loop


def name(text: str) -> str:
    from supervisor.reporting.control.protocol import NAME

    return _matching(NAME.pattern, text, "invalid name: use at most 63 lower-case letters, digits, _ or -")


def key(text: str) -> str:
    segment = r"(?!\.\.?(/|$))[A-Za-z0-9,_.-]+"
    why_not = "invalid key: use letters, digits and ,_.- in segments between single slashes"
    return _matching(f"{segment}(/{segment})*", text, why_not)


def session(text: str) -> str:
    uuid = r"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}"
    return _matching(uuid, text, "invalid session: an id of Consul is a UUID")


def index(text: str) -> int:
    return int(_matching(r"[0-9]{1,20}", text, "invalid index: must be a number from 0"))


def limit(text: str) -> int:
    return int(_matching(r"[1-9][0-9]{0,3}|10000", text, "invalid limit: must be a number from 1 to 10000"))


def _matching(pattern: str, text: str, why_not: str) -> str:
    if not re.fullmatch(pattern, text):
        raise ArgumentTypeError(why_not)
    return text


def socket(text: str) -> str:
    from supervisor.config.control import PATH_BYTES_MAX

    path = str(Path(text).absolute())
    if len(os.fsencode(path)) > PATH_BYTES_MAX:
        raise ArgumentTypeError(f"invalid path: a socket's path has at most {PATH_BYTES_MAX} bytes")
    return path


def port(text: str) -> int:
    """Return a port of TCP. 0 lets the system choose a port."""
    if not text.isascii() or not text.isdecimal() or int(text) > 65535:
        raise ArgumentTypeError(f"invalid port {text}: must be a number from 0 to 65535")
    return int(text)


def duration_s(text: str) -> float:
    from supervisor.config.formats.durations import parse_duration

    try:
        return parse_duration(text)
    except ValueError:
        raise ArgumentTypeError(f"invalid duration {text}: write 500ms, 1s or 1m30s") from None


def checks(text: str) -> tuple[str, ...]:
    """Return the ids of Consul's checks in a list with commas, each of them once."""
    found = tuple(dict.fromkeys(text.split(",")))
    if len(found) > CHECKS_MAX or not all(
        re.fullmatch(r"(?!.*\$\{)[\x21-\x7e]{1,256}", each) for each in found
    ):
        raise ArgumentTypeError(f"invalid checks: at most {CHECKS_MAX} ids of checks, separated by commas")
    return found


def timeout_s(text: str) -> float:
    return _bounded_s(text, 0.0, TIMEOUT_S_MAX, f"invalid duration {text}: a day at most")


def wait_s(text: str) -> float:
    """Return the seconds that ``lock`` waits at most. A plain 0 needs no unit."""
    return 0.0 if text == "0" else timeout_s(text)


def every_s(text: str) -> float:
    return _bounded_s(text, 1.0, EVERY_S_MAX, f"invalid period {text}: from 1s to 8760h")


def probe_interval_s(text: str) -> float:
    return _bounded_s(text, 0.01, 60.0, f"invalid duration {text}: from 10ms to 1m")


def suspicion_mult(text: str) -> int:
    return int(_matching(r"[1-9][0-9]?", text, "invalid suspicion_mult: must be a number from 1 to 99"))


def ttl(text: str) -> str:
    _bounded_s(text, 1.0, TTL_S_MAX, f"invalid TTL {text}: from 1s to 24h")
    return text


def lock_delay(text: str) -> str:
    why_not = f"invalid lock-delay {text}: a minute at most, which is as long as Consul's"
    _bounded_s(text, 0.0, LOCK_DELAY_S_MAX, why_not)
    return text


def rest_s(text: str) -> float:
    from supervisor.reporting.control.protocol import REST_S_MAX

    why_not = f"invalid duration {text}: a day at most; use `pause` for longer"
    return _bounded_s(text, 0.0, REST_S_MAX, why_not)


def pause_s(text: str) -> float:
    from supervisor.reporting.control.protocol import PAUSE_S_MAX

    return _bounded_s(text, 1.0, PAUSE_S_MAX, f"invalid duration {text}: from 1s to 720h")


def _bounded_s(text: str, least_s: float, most_s: float, why_not: str) -> float:
    if not least_s <= (length_s := duration_s(text)) <= most_s:
        raise ArgumentTypeError(why_not)
    return length_s


def speed(text: str) -> float:
    at_least_1 = r"(?!0+(\.|$))[0-9]{1,4}(\.[0-9]{1,3})?"
    return float(_matching(at_least_1, text, f"invalid speed {text}: must be a number from 1 to 9999"))


def note(text: str) -> str:
    from supervisor.reporting.control.protocol import NOTE_CHARS_MAX, note_of

    note = note_of(text)
    if note is None:
        raise ArgumentTypeError(f"invalid reason: one line of at most {NOTE_CHARS_MAX} printable characters")
    return note


def node(text: str) -> str:
    from supervisor.reporting.control.protocol import NODE

    return _matching(NODE.pattern, text, "invalid node: must be a name without blanks, or a session's id")
