"""Which keys share a query: keys that begin alike, so that one prefix covers them all.

Pure. A shared prefix must never be blank, because the blank prefix covers every key in Consul. Watches and
reads are divided by themselves. A watch keeps a connection for itself, so the number of watches has a limit.
A read takes milliseconds, so only the number of elections that one answer concerns has a limit.
"""

from collections import defaultdict
from collections.abc import Callable, Collection
from heapq import heappop, heappush
from itertools import count
from os.path import commonprefix

WATCHES_MAX = 64  # a third of Consul's limit for one address, because other programs here also use it
READ_TOGETHER_MAX = 24  # elections: the steps that follow from one answer take some 5 ms

_Group = tuple[str, ...]


def queries_for(elections: int, semaphores: int) -> int:
    """Return how many queries the elections may have under way at a time.

    Each election has its own query if WATCHES_MAX leaves room for all beside the semaphores, which cannot
    share a query. At least a quarter of WATCHES_MAX is left for elections.
    """
    return min(elections, max(WATCHES_MAX // 4, WATCHES_MAX - semaphores))


def watch_prefixes(keys: Collection[str], at_most: int) -> dict[str, str]:
    """Return, by key, the prefix of each key that shares a query. Any other key is queried alone.

    The queries are ``at_most`` in number, or a few more when keys have no beginning in common. No key
    shares a query when all keys can be queried alone.
    """
    return _together(keys, at_most, lambda group, queries: len(group) == 1 or queries > at_most)


def read_prefixes(keys: Collection[str], at_most: int) -> dict[str, str]:
    """Return, by key, the prefix of each key that is read together with others. Any other key is read alone.

    At most READ_TOGETHER_MAX keys are read together. No key is when each can have ``at_most`` watches.
    """
    return _together(keys, at_most, lambda group, queries: len(group) <= READ_TOGETHER_MAX)


def _together(keys: Collection[str], at_most: int, stays: Callable[[_Group, int], bool]) -> dict[str, str]:
    """Return, by key, the prefix of each group of more than one key.

    The largest group is divided first, so that an answer is small and shows few keys that no election has.
    stays: returns whether a group stays whole, of which a division would lead to so many queries.
    """
    if len(keys) <= at_most:
        return {}
    groups, whole, added = [(0, 0, tuple(sorted(set(keys))))], list[_Group](), count(1)
    while groups:
        *_, group = heappop(groups)
        parts = _divided(group)
        if commonprefix(group) and stays(group, len(groups) + len(whole) + len(parts)):
            whole.append(group)
        else:
            for part in parts:
                heappush(groups, (-len(part), -next(added), part))
    return {key: commonprefix(group) for group in whole if len(group) > 1 for key in group}


def _divided(group: _Group) -> list[_Group]:
    """Divide the keys by the first character in which they differ."""
    length = len(commonprefix(group)) + 1
    parts = defaultdict[str, list[str]](list)
    for key in group:
        parts[key[:length]].append(key)
    return [tuple(part) for part in parts.values()]
