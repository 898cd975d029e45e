"""One query for many keys, for more elections than connections.

Consul closes connections of one address beyond 200, and a watch keeps one connection for itself. So beyond
``WATCHES_MAX`` elections a recursive query covers all keys that begin alike. This package must never decide
what an answer means: the request for one key is answered as if that key had been queried alone.

    grouping.py    which keys share a query
    listing.py     all keys below a prefix as one answer shows them
    watcher.py     the queries for the keys below one prefix
"""

from supervisor.consul.shared.grouping import WATCHES_MAX, prefixes_for, queries_for
from supervisor.consul.shared.listing import LOCK_FLAGS, NO_FLAGS, Listing, listed, view_of
from supervisor.consul.shared.watcher import ASK_SINGLY, READ_S, ListQuery, PrefixWatcher

__all__ = [
    "LOCK_FLAGS",
    "NO_FLAGS",
    "ASK_SINGLY",
    "READ_S",
    "WATCHES_MAX",
    "PrefixWatcher",
    "Listing",
    "ListQuery",
    "listed",
    "prefixes_for",
    "queries_for",
    "view_of",
]
