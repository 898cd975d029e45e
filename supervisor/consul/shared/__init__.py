"""One query for many keys, for more elections than connections.

Consul closes connections of one address beyond 200, and a watch keeps one connection for itself. So beyond
``WATCHES_MAX`` elections a recursive query covers all keys that begin alike. This package must never decide
what an answer means: the request for one key is answered as if that key had been queried alone.

    grouping.py  which keys share a query
    listing.py   all keys below a prefix as one answer shows them
    query.py     a query for all keys below a prefix, and the requests that wait for its answer
    watcher.py   the watches of the keys below one prefix
    reader.py    the reads of the keys below one prefix
"""

from supervisor.consul.shared.grouping import (
    READ_TOGETHER_MAX,
    WATCHES_MAX,
    queries_for,
    read_prefixes,
    watch_prefixes,
)
from supervisor.consul.shared.listing import LOCK_FLAGS, NO_FLAGS, Listing, listed, view_of
from supervisor.consul.shared.query import ASK_SINGLY, ListQuery, SharedQuery
from supervisor.consul.shared.reader import READ_S, PrefixReader
from supervisor.consul.shared.watcher import PrefixWatcher

__all__ = [
    "ASK_SINGLY",
    "LOCK_FLAGS",
    "NO_FLAGS",
    "READ_S",
    "READ_TOGETHER_MAX",
    "WATCHES_MAX",
    "ListQuery",
    "Listing",
    "PrefixReader",
    "PrefixWatcher",
    "SharedQuery",
    "listed",
    "queries_for",
    "read_prefixes",
    "view_of",
    "watch_prefixes",
]
