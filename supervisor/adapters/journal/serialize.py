"""Frozen dataclasses as plain JSON values and back, by their annotations.

Records must stay readable for later versions and for the version before, so a missing field takes its default
and an unknown one is ignored. The default of a field that is written is therefore never changed. Bytes become
text that a person can read, and any bytes survive.
"""

import types
import typing
from collections.abc import Callable, Iterable
from dataclasses import MISSING, fields, is_dataclass
from enum import Enum
from functools import cache
from operator import attrgetter
from typing import Any

_PLAIN = (str, int, float, bool, types.NoneType)


def to_plain(value: Any) -> Any:
    """Return the value in the types that ``json`` can write."""
    if isinstance(value, bytes):
        return value.decode("utf-8", "surrogateescape")
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, tuple):
        return [to_plain(item) for item in value]
    names, read = _fields(value.__class__)
    if not names:
        return value
    # A holder writes its record with each answer of Consul, so most parts are taken as they are.
    parts = zip(names, read(value), strict=False)
    return {name: part if part.__class__ in _PLAIN else to_plain(part) for name, part in parts}


@cache
def _fields(kind: type) -> tuple[tuple[str, ...], Callable[[Any], Iterable[Any]]]:
    """Return the names of the fields of a dataclass and their reader. No name: another type."""
    names = tuple(field.name for field in fields(kind)) if is_dataclass(kind) else ()
    # The reader of one name alone would return the field itself and no tuple.
    return names, attrgetter(*names, names[0]) if names else tuple


def without_defaults(value: Any) -> Any:
    """Return the value as ``to_plain`` does, without the fields that are at their default.

    So a version reads the record of a later one, as long as no setting is used that it does not know: it
    tells an election from a semaphore by the names that it finds.
    """
    if isinstance(value, tuple):
        return [without_defaults(item) for item in value]
    if not is_dataclass(value):
        return to_plain(value)
    parts = ((each, getattr(value, each.name)) for each in fields(value))
    return {each.name: without_defaults(part) for each, part in parts if part != each.default}


def from_plain(kind: Any, plain: Any) -> Any:
    """Return the value of this type from which ``to_plain`` made the plain value.

    Raises ValueError, TypeError, KeyError, AttributeError or StopIteration when there is no such value.
    """
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if origin in (types.UnionType, typing.Union):
        return None if plain is None else from_plain(_member(arguments, plain), plain)
    if origin is typing.Literal:
        if plain not in arguments:
            raise ValueError(f"{plain!r} is not one of {arguments}")
        return plain
    if origin is tuple:
        return _items(arguments, plain)
    if kind is bytes:
        return plain.encode("utf-8", "surrogateescape")
    if isinstance(kind, type) and is_dataclass(kind):
        known = _annotations(kind)
        return kind(**{name: from_plain(known[name], part) for name, part in plain.items() if name in known})
    if issubclass(kind, Enum):
        return kind(plain)
    if kind is float and isinstance(plain, int) and not isinstance(plain, bool):
        return float(plain)
    if not isinstance(plain, kind):
        raise TypeError(f"{plain!r} is not of type {kind.__name__}")
    return plain


@cache
def _annotations(kind: type) -> dict[str, Any]:
    return typing.get_type_hints(kind)


def _member(arguments: tuple[Any, ...], plain: Any) -> Any:
    """Return the only type that is not None, or the dataclass whose required fields are there.

    Of several, the one with the most required fields is meant. Fields that no type knows decide nothing.
    """
    kinds = [kind for kind in arguments if kind is not types.NoneType]
    if len(kinds) == 1:
        return kinds[0]
    return max(
        (kind for kind in kinds if _required(kind) <= plain.keys()), key=lambda kind: len(_required(kind))
    )


@cache
def _required(kind: Any) -> frozenset[str]:
    return frozenset(each.name for each in fields(kind) if each.default is MISSING)


def _items(arguments: tuple[Any, ...], plain: Any) -> tuple[Any, ...]:
    if arguments[-1] is Ellipsis:
        return tuple(from_plain(arguments[0], item) for item in plain)
    return tuple(from_plain(kind, item) for kind, item in zip(arguments, plain, strict=True))
