"""``replace``, as dataclasses has it, for the values of the core: quick, and it makes no copy of what is
the same.

A turn replaces two dozen values, most of them by themselves, and a hand-over waits for four turns.
It must never run code of the value's class: no value of the core has any that makes it whole.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dataclasses import replace
else:
    from dataclasses import fields

    _Slots = tuple[tuple[str, Callable[[Any], Any], Callable[[Any, Any], None]], ...]
    _SLOTS: dict[type, _Slots] = {}
    """Of each class: its fields, each with what reads and what sets it."""

    def replace(value, /, **changes):
        """A value like this one but for these fields; itself when nothing changes."""
        for name, new in changes.items():
            if getattr(value, name) is not new:
                break
        else:
            return value
        cls = type(value)
        slots = _SLOTS.get(cls) or _slots(cls)
        copy = cls.__new__(cls)
        for name, read, write in slots:
            write(copy, changes[name] if name in changes else read(value))
        return copy

    def _slots(cls):
        assert not hasattr(cls, "__post_init__"), f"{cls.__name__} must be made by its own __init__"
        slots = [(field.name, getattr(cls, field.name)) for field in fields(cls)]
        found = tuple((name, slot.__get__, slot.__set__) for name, slot in slots)
        _SLOTS[cls] = found
        return found


__all__ = ["replace"]
