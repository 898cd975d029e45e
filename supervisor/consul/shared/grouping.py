"""Which keys share a query: keys that begin alike, so that one prefix covers them all.

Pure. A shared prefix must never be blank, because the blank prefix covers every key in Consul.
"""

from collections import defaultdict
from collections.abc import Collection
from os.path import commonprefix

WATCHES_MAX = 64  # a third of Consul's limit for one address, because other programs here also use it

_Group = tuple[str, ...]


def queries_for(elections: int, semaphores: int) -> int:
    """Return how many queries the elections may have under way at a time.

    Each election has its own query if WATCHES_MAX leaves room for all beside the semaphores, which cannot
    share a query. At least a quarter of WATCHES_MAX is left for elections.
    """
    return min(elections, max(WATCHES_MAX // 4, WATCHES_MAX - semaphores))


def prefixes_for(keys: Collection[str], at_most: int) -> dict[str, str]:
    """Return, by key, the prefix of each key that shares a query. Any other key is queried alone.

    The queries are ``at_most`` in number, or a few more when keys have no beginning in common. No key
    shares a query when all keys can be queried alone. The largest group is divided first, so that an
    answer is small and shows few keys that no election has.
    """
    if len(keys) <= at_most:
        return {}
    groups = [tuple(sorted(set(keys)))]
    whole: list[_Group] = []
    while groups:
        groups.sort(key=len)
        largest = groups.pop()
        parts = _divided(largest)
        fits = len(groups) + len(whole) + len(parts) <= at_most
        if len(largest) > 1 and (fits or not commonprefix(largest)):
            groups += parts
        else:
            whole.append(largest)
    return {key: commonprefix(group) for group in whole if len(group) > 1 for key in group}


def _divided(group: _Group) -> list[_Group]:
    """Divide the keys by the first character in which they differ."""
    length = len(commonprefix(group)) + 1
    parts = defaultdict[str, list[str]](list)
    for key in group:
        parts[key[:length]].append(key)
    return [tuple(part) for part in parts.values()]
