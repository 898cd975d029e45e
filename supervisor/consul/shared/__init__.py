"""One question for many keys, where each cannot have a connection of its own.

Consul closes what one address opens beyond 200 connections, and a watch keeps one for itself. So
beyond ``WATCHES_MAX`` elections the keys that begin alike are asked for together, by recursive
queries. What an answer means is decided elsewhere: whoever asked for one key is answered as if
for that key alone.

    grouping.py    which keys are asked for together
    listing.py     what Consul says of all keys below a prefix
    watcher.py     the questions about the keys below one prefix
"""

from supervisor.consul.shared.grouping import WATCHES_MAX, prefixes_for, questions_of
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
    "questions_of",
    "view_of",
]
