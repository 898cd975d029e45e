"""The node that a holder names in the value that it writes into Consul."""

import json


def holder_node(value: str | bytes) -> str:
    """Return ``Node`` of a value that is JSON with such a field, as our default is. Blank: there is none."""
    try:
        content = json.loads(value)
    except (ValueError, RecursionError):
        return ""
    node = content.get("Node") if isinstance(content, dict) else None
    return node if isinstance(node, str) else ""
