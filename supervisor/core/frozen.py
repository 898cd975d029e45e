"""``dataclass`` and ``replace`` of dataclasses for the values of the core, but quicker.

Python compiles seven functions for each frozen dataclass, one by one, and a command imports up to a hundred
and thirty. This ``dataclass`` compiles three of them, in one go, at the first use of the class. The classes
share the others.

A step replaces two dozen values, most of them by themselves, and a hand-over waits for four steps. This
``replace`` does not copy an equal value. It never runs code of the value's class, so no class of the core may
have a ``__post_init__``.
"""

from collections.abc import Callable, Iterable
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dataclasses import dataclass, replace

    def make_copiers(modules: Iterable[ModuleType]) -> None:
        """Compile the functions of all classes."""
else:
    import dataclasses
    from dataclasses import MISSING, FrozenInstanceError, fields, is_dataclass
    from operator import attrgetter

    _Copy = Callable[[Any], Any]
    _Setters = dict[str, Callable[[Any, Any], None]]
    _COPIES: dict[type, tuple[_Copy, _Setters]] = {}
    """For each class: a function that copies a value, and the function that sets each field of a copy."""
    _LATE: dict[type, dict[str, Any]] = {}
    """For each class that nobody has used yet: the stand-ins of its functions."""

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

    def dataclass(*, frozen, slots):
        """Return the decorator of a frozen dataclass with slots."""
        assert frozen and slots
        return _frozen

    def _frozen(cls):
        cls = dataclasses.dataclass(init=False, repr=False, eq=False, slots=True)(cls)
        late = {name: _late(cls, name) for name in ("__init__", "__hash__", "__eq__")}
        members = {**late, "__repr__": _repr, "__reduce__": _reduce}
        for name, member in {**members, "__setattr__": _refuse, "__delattr__": _refuse}.items():
            if name not in vars(cls):
                setattr(cls, name, member)
        _LATE[cls] = late
        return cls

    def _late(cls, name):
        """Return a stand-in that the first call replaces by the compiled function."""

        def late(self, /, *values, **named):
            _compile(cls)
            return vars(cls)[name](self, *values, **named)

        return late

    def _compile(cls):
        """Compile the functions of this class that are called often, unless that is done."""
        late = _LATE.pop(cls, {})
        for name, function in _compiled(cls).items() if late else ():
            if vars(cls)[name] is late[name]:
                setattr(cls, name, function)

    def _compiled(cls):
        assert not hasattr(cls, "__post_init__"), f"{cls.__name__} must be made by its own __init__"
        given = lines = mine = its = ""
        scope = {}
        for field in sorted(fields(cls), key=attrgetter("kw_only")):
            name = field.name
            assert field.init and field.default_factory is MISSING
            scope |= {f"set_{name}": getattr(cls, name).__set__, f"or_{name}": field.default}
            given += ", *" if field.kw_only and "*" not in given else ""
            given += f", {name}" + ("" if field.default is MISSING else f"=or_{name}")
            lines += f" set_{name}(self, {name})\n"
            mine, its = (f"{mine}self.{name},", f"{its}other.{name},") if field.compare else (mine, its)
        exec(
            f"def __init__(self{given}):\n{lines} pass\n"
            f"def __hash__(self):\n return hash(({mine}))\n"
            "def __eq__(self, other):\n"
            f" return ({mine}) == ({its}) if other.__class__ is self.__class__ else NotImplemented\n",
            scope,
        )
        return {name: scope[name] for name in ("__init__", "__hash__", "__eq__")}

    def _repr(self):
        shown = (f"{field.name}={getattr(self, field.name)!r}" for field in fields(self) if field.repr)
        return f"{self.__class__.__qualname__}({', '.join(shown)})"

    def _reduce(self):
        return _restored, (self.__class__, tuple(getattr(self, field.name) for field in fields(self)))

    def _restored(cls, values):
        value = cls.__new__(cls)
        for field, each in zip(fields(cls), values, strict=True):
            getattr(cls, field.name).__set__(value, each)
        return value

    def _refuse(self, name, *_):
        raise FrozenInstanceError(f"cannot assign to field {name!r}")

    def make_copiers(modules):
        """Compile the functions of all classes of these modules, because a hand-over must not compile."""
        for cls in {each for module in modules for each in vars(module).values() if isinstance(each, type)}:
            _compile(cls)
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


__all__ = ["dataclass", "make_copiers", "replace"]
