"""Whom a write wakes who waits for a key that does not exist.

Consul keeps its keys in a radix tree (a node for every point where keys part), and a query waits
on one node of it: the key's own if the key exists, else the node at which the search for it ended.
A write replaces all nodes on the way to its key. So a waiter for an absent key is woken, too, by
writes to keys that merely share that node; its answer then is "not found" with a higher index.

Nothing is kept here: which nodes a tree has follows from its keys alone. A node is named by its
path, the bytes that all keys below it begin with; the root's path is empty.
"""

import os.path
from collections.abc import Iterable


def end_of_search(keys: Iterable[bytes], sought: bytes) -> bytes:
    """The path of the node at which the search for ``sought``, a key or a prefix, ends."""
    keys = list(keys)
    shared = max((len(os.path.commonprefix([key, sought])) for key in keys), default=0)
    return _node_below(keys, sought[:shared]) if shared else b""


def split_by(keys: Iterable[bytes], added: bytes) -> bytes:
    """The path of the node, not on the way to ``added``, that adding it to ``keys`` may split."""
    return end_of_search(keys, added)


def merged_by(keys: Iterable[bytes], removed: bytes) -> bytes | None:
    """The path of the node that is merged with its parent once ``removed`` is gone; None: none is."""
    keys = list(keys)
    shared = max((len(os.path.commonprefix([key, removed])) for key in keys), default=0)
    if not shared:
        return None  # the parent was the root, which stays
    path = _node_below(keys, removed[:shared])
    return path if len(path) > shared else None


def _node_below(keys: Iterable[bytes], path: bytes) -> bytes:
    return os.path.commonprefix([key for key in keys if key.startswith(path)]) or b""
