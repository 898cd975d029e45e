"""Which keys are asked for together: those that begin alike, so that one prefix names them all.

Pure. It must never name the blank prefix, for that is all there is in Consul.
"""

from collections import defaultdict
from collections.abc import Collection
from os.path import commonprefix

WATCHES_MAX = 64  # a third of what Consul grants one address: others on this machine use it, too

_Group = tuple[str, ...]


def questions_of(elections: int, semaphores: int) -> int:
    """How many questions of elections are under way at a time: one each, or as many as there is room for
    beside the semaphores, which cannot share theirs; a quarter of it is left in any case."""
    return min(elections, max(WATCHES_MAX // 4, WATCHES_MAX - semaphores))


def prefixes_for(keys: Collection[str], at_most: int) -> dict[str, str]:
    """The prefix of each key that shares its questions; whoever is not in it asks alone.

    Together they are ``at_most`` questions, or a few more where keys have no beginning in common.
    Nobody shares where all can be alone. The largest group is divided first, so that an answer is
    as small as can be and tells of few keys that nobody asked for.
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
    """By the first character in which they differ."""
    length = len(commonprefix(group)) + 1
    parts = defaultdict[str, list[str]](list)
    for key in group:
        parts[key[:length]].append(key)
    return [tuple(part) for part in parts.values()]
