"""How deep JSON is nested, so that a value of another program cannot exhaust the stack."""

from collections.abc import Iterable

DEPTH_MAX = 32  # levels of lists and mappings, because `json` needs a frame of the stack for each


def is_deeper(value: object, depth: int) -> bool:
    """Return whether ``value`` has more than ``depth`` levels of lists and mappings."""
    level = [value]
    for _ in range(depth):
        level = [part for each in level for part in _parts(each)]
        if not level:
            return False
    return any(isinstance(each, dict | list) for each in level)


def _parts(value: object) -> Iterable[object]:
    if isinstance(value, dict):
        return value.values()
    return value if isinstance(value, list) else ()
