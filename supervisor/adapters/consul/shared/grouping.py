"""Which keys share a query: keys that begin alike, so that one prefix covers them all.

Pure. A shared prefix must never be blank, because the blank prefix covers every key in Consul. Watches and
reads are divided by themselves. A watch keeps a connection for itself, so the number of watches has a limit.
A read takes milliseconds, so only the number of elections that one answer concerns has a limit.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable
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
    return _by_key(whole)


def read_prefixes(keys: Collection[str], at_most: int) -> dict[str, str]:
    """Return, by key, the prefix of each key that is read together with others. Any other key is read alone.

    At most READ_TOGETHER_MAX keys are read together. No key is when each can have ``at_most`` watches.
    """
    if len(keys) <= at_most:
        return {}
    groups = [tuple(sorted(set(keys)))]
    whole: list[_Group] = []
    while groups:
        group = groups.pop()
        if len(group) > READ_TOGETHER_MAX or not commonprefix(group):
            groups += _divided(group)
        else:
            whole.append(group)
    return _by_key(whole)


def _by_key(groups: Iterable[_Group]) -> dict[str, str]:
    """Return, by key, the prefix of each group of more than one key."""
    return {key: commonprefix(group) for group in groups if len(group) > 1 for key in group}


def _divided(group: _Group) -> list[_Group]:
    """Divide the keys by the first character in which they differ."""
    length = len(commonprefix(group)) + 1
    parts = defaultdict[str, list[str]](list)
    for key in group:
        parts[key[:length]].append(key)
    return [tuple(part) for part in parts.values()]
