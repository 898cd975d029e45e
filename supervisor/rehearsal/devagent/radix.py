"""Consul's radix tree of keys, as far as it decides which queries a write wakes.

The tree has a node for every point where keys part, and a query waits on one node: the key's own if the
key exists, else the node at which the search for the key ended. A write replaces all nodes on the way to
its key. So a write wakes also the queries for absent keys that share a node with the written key; such a
query is answered "not found" with a higher index.

Nothing is kept here, because the keys alone decide which nodes a tree has. A node is named by its path:
the bytes with which all keys below the node begin. The root's path is empty.
"""

import os.path
from collections.abc import Iterable


def end_of_search(keys: Iterable[bytes], sought: bytes) -> bytes:
    """Return the path of the node at which the search for ``sought``, a key or a prefix, ends."""
    keys = list(keys)
    shared = max((len(os.path.commonprefix([key, sought])) for key in keys), default=0)
    return _node_below(keys, sought[:shared]) if shared else b""


def merged_by(keys: Iterable[bytes], removed: bytes) -> bytes | None:
    """Return the path of the node that is merged with its parent once ``removed`` is gone. None: none is."""
    keys = list(keys)
    shared = max((len(os.path.commonprefix([key, removed])) for key in keys), default=0)
    if not shared:
        return None  # the parent was the root, which stays
    path = _node_below(keys, removed[:shared])
    return path if len(path) > shared else None


def _node_below(keys: Iterable[bytes], path: bytes) -> bytes:
    return os.path.commonprefix([key for key in keys if key.startswith(path)]) or b""
