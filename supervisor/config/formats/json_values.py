"""JSON in values of other programs: how deep it is nested, and which node it names."""

import json
import re
from collections.abc import Iterable

DEPTH_MAX = 32  # levels of lists and mappings, because `json` needs a frame of the stack for each
_HOST = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._-]{0,251}[A-Za-z0-9])?")


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


def holder_node(value: str | bytes) -> str:
    """Return the node that a holder names in the value that it writes into Consul. Blank: it names none.

    The value is then JSON with a field ``Node``, as our default is.
    """
    try:
        content = json.loads(value)
    except (ValueError, RecursionError):
        return ""
    node = content.get("Node") if isinstance(content, dict) else None
    return node if isinstance(node, str) else ""


def holder_name(value: bytes) -> str:
    """Return the node that the value names, or a text that may be the name of a host. Blank: neither."""
    text = value.decode(errors="replace")
    return holder_node(text) or (text if _HOST.fullmatch(text) else "")
