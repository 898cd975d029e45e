"""JSON bodies, read as Go reads them: names in any case, null for "not given", types checked.

The words of the errors are those of Go's decoder, for a person at the other end reads them.
"""

from collections.abc import Mapping
from typing import Any

from supervisor.devagent.gotext import UINT64_MAX

_KINDS = {str: "string", bool: "bool", int: "number", float: "number", list: "array", dict: "object"}


def kind_of(value: object) -> str:
    """What Go calls a JSON value of this type."""
    return _KINDS[type(value)]


class Fields:
    """The fields of one JSON object. ``of`` is what Go's errors call the thing it belongs to.

    Every method raises ValueError when the field has another type.
    """

    def __init__(self, value: object, of: str, kind: str) -> None:
        if value is not None and not isinstance(value, dict):
            raise ValueError(f"json: cannot unmarshal {kind_of(value)} into Go value of type {kind}")
        self._fields: Mapping[str, Any] = {name.lower(): field for name, field in (value or {}).items()}
        self._spelled: Mapping[str, str] = {name.lower(): name for name in value or ()}
        self._of = of

    def has(self, name: str) -> bool:
        """Whether the field is there, null or not."""
        return name.lower() in self._fields

    def any(self, name: str) -> Any:
        """The field whatever its type; None when absent."""
        return self._fields.get(name.lower())

    def names(self) -> tuple[str, ...]:
        """The names of all fields, in lower case."""
        return tuple(self._fields)

    def spelled(self, name: str) -> str:
        """The name as the body has it."""
        return self._spelled[name.lower()]

    def text(self, name: str, default: str = "", kind: str = "string") -> str:
        """A string."""
        value = self.any(name)
        if value is None:
            return default
        if not isinstance(value, str):
            raise self._wrong(value, name, kind)
        return value

    def unsigned(self, name: str) -> int:
        """An unsigned number, 0 when absent."""
        value = self.any(name)
        if value is None:
            return 0
        if isinstance(value, bool) or not isinstance(value, int):
            number = f" {value}" if isinstance(value, float) else ""
            raise self._wrong(value, name, "uint64", number)
        if not 0 <= value <= UINT64_MAX:
            raise self._wrong(value, name, "uint64", f" {value}")
        return value

    def texts(self, name: str, kind: str = "string") -> tuple[str, ...]:
        """A list of strings, empty when absent."""
        found = self.items(name, kind)
        for value in found:
            if value is not None and not isinstance(value, str):
                raise self._wrong(value, name, kind)
        return tuple(value or "" for value in found)

    def items(self, name: str, kind: str) -> list[Any]:
        """A list of anything, empty when absent; ``kind`` is Go's name for what it should hold."""
        value = self.any(name)
        if value is None:
            return []
        if not isinstance(value, list):
            raise self._wrong(value, name, f"[]{kind}")
        return value

    def objects(self, name: str, of: str, kind: str) -> list["Fields"]:
        """A list of objects, empty when absent."""
        found = self.items(name, kind)
        for value in found:
            if value is not None and not isinstance(value, dict):
                raise self._wrong(value, name, kind)
        return [Fields(value, of, kind) for value in found]

    def one(self, name: str, of: str, kind: str) -> "Fields | None":
        """An object, None when absent."""
        value = self.any(name)
        if value is not None and not isinstance(value, dict):
            raise self._wrong(value, name, kind)
        return None if value is None else Fields(value, of, kind)

    def _wrong(self, value: object, name: str, kind: str, number: str = "") -> ValueError:
        met = kind_of(value) + number
        return ValueError(
            f"json: cannot unmarshal {met} into Go struct field {self._of}.{name} of type {kind}"
        )
