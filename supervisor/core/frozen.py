"""``replace`` of dataclasses for the values of the core, but quicker: an equal value is not copied.

A step replaces two dozen values, most of them by themselves, and a hand-over waits for four steps. This
``replace`` never runs code of the value's class, so no class of the core may have a ``__post_init__``.
"""

from collections.abc import Callable, Iterable
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dataclasses import replace

    def make_copiers(modules: Iterable[ModuleType]) -> None:
        """Make the functions of all classes."""
else:
    from dataclasses import fields, is_dataclass

    _Copy = Callable[[Any], Any]
    _Setters = dict[str, Callable[[Any, Any], None]]
    _COPIES: dict[type, tuple[_Copy, _Setters]] = {}
    """For each class: a function that copies a value, and the function that sets each field of a copy."""

    def replace(value, /, **changes):
        """Return the value with these fields changed, or the value itself when nothing changes."""
        for name in changes:
            if getattr(value, name) is not changes[name]:
                break
        else:
            return value
        cls = value.__class__
        try:
            copied, setters = _COPIES[cls]
        except KeyError:
            copied, setters = _COPIES[cls] = _copying(cls)
        copy = copied(value)
        for name in changes:
            setters[name](copy, changes[name])
        return copy

    def make_copiers(modules):
        """Make the functions for the classes of these modules now, because a hand-over must not compile."""
        for cls in {each for module in modules for each in vars(module).values() if isinstance(each, type)}:
            if is_dataclass(cls) and cls not in _COPIES:
                _COPIES[cls] = _copying(cls)

    def _copying(cls):
        """Make the functions for this class: one line for each field, as dataclasses make ``__init__``."""
        assert not hasattr(cls, "__post_init__"), f"{cls.__name__} must be made by its own __init__"
        setters = {field.name: getattr(cls, field.name).__set__ for field in fields(cls)}
        lines = "".join(f"    set_{name}(copy, value.{name})\n" for name in setters)
        scope = {f"set_{name}": setter for name, setter in setters.items()} | {"new": cls.__new__, "cls": cls}
        exec(f"def copied(value):\n    copy = new(cls)\n{lines}    return copy\n", scope)
        return scope["copied"], setters


__all__ = ["make_copiers", "replace"]
