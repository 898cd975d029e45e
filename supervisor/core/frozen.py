"""``replace`` of dataclasses for the values of the core, but quicker: an equal value is not copied.

A step replaces two dozen values, most of them by themselves, and a hand-over waits for four steps. This
``replace`` never runs code of the value's class, so no class of the core may have a ``__post_init__``.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dataclasses import replace
else:
    from dataclasses import fields

    _Slots = tuple[tuple[str, Callable[[Any], Any], Callable[[Any, Any], None]], ...]
    _SLOTS: dict[type, _Slots] = {}
    """The fields of each class: the name, the reader and the setter of each."""

    def replace(value, /, **changes):
        """Return the value with these fields changed, or the value itself when nothing changes."""
        for name in changes:
            if getattr(value, name) is not changes[name]:
                break
        else:
            return value
        cls = value.__class__
        try:
            slots = _SLOTS[cls]
        except KeyError:
            slots = _slots(cls)
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
