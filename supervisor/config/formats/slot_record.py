"""The value of a semaphore's ``.lock``, and of contender keys: JSON that other programs also read.

The form is that of Consul's own client: ``{"Limit": 3, "Holders": {"<session>": true}}``, to which we add
``PruneDelay``, and ``Slots`` with the numbers of the holders' slots. A list of holders, as in some guides, is
read and never written. Fields of other programs are kept. Pure functions of bytes, which must never decide
what a record means.
"""

import json
import re
from collections import Counter
from collections.abc import Iterator
from math import ceil
from typing import TYPE_CHECKING, Any

from supervisor.config.formats.durations import parse_duration
from supervisor.config.formats.json_values import DEPTH_MAX, is_deeper
from supervisor.core.lease import PRUNE_DELAY_MAX_S

if TYPE_CHECKING:
    from supervisor.core.requests import SlotRecord

LIMIT_MAX = 10_000
HOLDERS_MAX = LIMIT_MAX
SESSION = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,127}")  # Consul's IDs are UUIDs; each becomes part of a key
_OURS = ("limit", "holders", "prunedelay", "slots")


class InvalidRecord(Exception):
    """A value that is no semaphore record; the text says why."""


def decoded(value: bytes) -> "SlotRecord":
    """Decode the value of ``.lock``. An empty value is a new record. Raises InvalidRecord.

    Names of fields may be in upper or lower case, as Consul's client accepts them.
    """
    from supervisor.core.requests import SlotRecord

    if not value.strip():
        return SlotRecord()
    fields = _object(value)
    known = {name.lower(): part for name, part in fields.items()}
    others = {name: part for name, part in fields.items() if name.lower() not in _OURS}
    limit = known.get("limit")
    if isinstance(limit, bool) or not isinstance(limit, int) or not 0 < limit <= LIMIT_MAX:
        raise InvalidRecord(f"its Limit is no number from 1 to {LIMIT_MAX}")
    rest = json.dumps(others, separators=(",", ":")) if others else ""
    holders, delay_s = _holders(known.get("holders")), _duration(known.get("prunedelay"))
    return SlotRecord(limit, holders, delay_s, rest, tuple(_numbers(known.get("slots"), holders)))


def encoded(slot_record: "SlotRecord") -> bytes:
    fields: dict[str, Any] = {"Limit": slot_record.limit, "Holders": dict.fromkeys(slot_record.holders, True)}
    if slot_record.prune_delay_s is not None:
        fields["PruneDelay"] = _text(slot_record.prune_delay_s)
    if slot_record.numbers:
        fields["Slots"] = dict(slot_record.numbers)
    fields |= json.loads(slot_record.others) if slot_record.others else {}
    return json.dumps(fields, separators=(",", ":")).encode()


def body(value: object, prune_delay_s: float) -> bytes:
    """Return the value of our contender key: ``value`` of the configuration, and our prune delay."""
    fields = value if isinstance(value, dict) else {"Value": value}
    content = {**fields, "PruneDelay": _text(prune_delay_s)}
    return json.dumps(content, ensure_ascii=False, separators=(",", ":")).encode()


def prune_delay_s(value: bytes) -> float | None:
    """Return the prune delay in a contender key's value, in seconds. None: it has no valid one."""
    try:
        return _duration(_object(value).get("PruneDelay"))
    except InvalidRecord:
        return None


def _object(value: bytes) -> dict[str, Any]:
    try:
        fields = json.loads(value)
    except (ValueError, RecursionError):
        raise InvalidRecord("it is no JSON") from None
    if not isinstance(fields, dict):
        raise InvalidRecord("it is no JSON object")
    if is_deeper(fields, DEPTH_MAX):
        raise InvalidRecord(f"it is nested more than {DEPTH_MAX} deep")
    return fields


def _holders(given: object) -> tuple[str, ...]:
    """Return the sessions in Holders, whatever value a session has there, as Consul's client does."""
    if given is None:
        return ()
    named = tuple(given) if isinstance(given, dict | list) else (None,)
    holders = tuple(each for each in named if isinstance(each, str) and SESSION.fullmatch(each))
    if len(holders) != len(named) or len(set(holders)) != len(holders):
        raise InvalidRecord("its Holders are no names of sessions")
    if len(holders) > HOLDERS_MAX:
        raise InvalidRecord(f"it has more than {HOLDERS_MAX} Holders")
    return holders


def _numbers(given: object, holders: tuple[str, ...]) -> Iterator[tuple[str, int | None]]:
    """Yield the holders' numbers, without damaged ones; a number that two holders have is damage as well."""
    numbers = {each: given[each] for each in holders if each in given} if isinstance(given, dict) else {}
    times = Counter(number for number in numbers.values() if type(number) is int)
    for session, number in numbers.items():
        if number is None or (type(number) is int and 0 <= number < LIMIT_MAX and times[number] == 1):
            yield session, number


def _text(length_s: float) -> str:
    """Return the duration as text, rounded up to milliseconds, because a shorter one would be unsafe."""
    length_ms = ceil(length_s * 1000)
    return f"{length_ms}ms" if length_ms % 1000 else f"{length_ms // 1000}s"


def _duration(given: object) -> float | None:
    if not isinstance(given, str):
        return None
    try:
        return min(parse_duration(given), PRUNE_DELAY_MAX_S)
    except ValueError:
        return None
