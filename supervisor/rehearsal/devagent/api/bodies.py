"""JSON bodies: decode them, and read the fields of their objects."""

import json
from typing import Any

UINT64_MAX = 2**64 - 1


def decode(body: bytes) -> Any:
    """Return the JSON value of a body. Raises ValueError when the body is no JSON."""
    try:
        return json.loads(body)
    except RecursionError:
        raise ValueError("exceeded max depth") from None


class Fields:
    """The fields of one JSON object. Like Go's decoder this ignores the case of their names, and null.

    Every method raises ValueError when the body is of another shape.
    """

    def __init__(self, value: object) -> None:
        if not isinstance(value, dict):
            raise ValueError(f"an object was expected, not {value!r:.50}")
        self._fields = {name.lower(): field for name, field in value.items() if field is not None}

    @property
    def names(self) -> frozenset[str]:
        return frozenset(self._fields)

    def any(self, name: str) -> Any:
        return self._fields.get(name.lower())

    def text(self, name: str, default: str = "") -> str:
        value = self.any(name)
        return default if value is None else text_of(value)

    def number(self, name: str) -> int:
        value = self._fields.get(name.lower(), 0)
        if type(value) is not int or not 0 <= value <= UINT64_MAX:
            raise ValueError(f"{name} is no unsigned number of 64 bits")
        return value

    def items(self, name: str) -> list[Any]:
        value = self._fields.get(name.lower(), [])
        if not isinstance(value, list):
            raise ValueError(f"{name} is no list")
        return value


def text_of(value: object) -> str:
    """Return the value, which is text. Raises ValueError when it is none, or has half a surrogate pair."""
    if not isinstance(value, str):
        raise ValueError(f"text was expected, not {value!r:.50}")
    value.encode()
    return value
