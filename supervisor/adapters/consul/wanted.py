"""The items of a configuration, each with its pace, and which of their keys are queried together."""

import random
from collections import Counter
from collections.abc import Collection, Mapping
from itertools import count

from supervisor.adapters.consul.shared.grouping import (
    READ_TOGETHER_MAX,
    queries_for,
    read_prefixes,
    watch_prefixes,
)
from supervisor.config import Config
from supervisor.core.settings import NOWHERE, ElectionSettings, Place, Wanted

START_SPACING_S = 0.005  # between the starts of two items: the time of a session, an acquire and a hook


def wanted_of(config: Config, going_on: Collection[str] = (), place: Place = NOWHERE) -> tuple[Wanted, ...]:
    """Return the items of the file, each with its pace.

    Items that are read together read at one time, and items that begin do so one after the other.
    ``going_on``: the names of items that have begun already, which do not wait.
    ``place``: where this process runs.
    """
    prefixes = read_together(config)
    starts = count()
    offsets = read_offsets(prefixes)
    return tuple(
        Wanted(
            settings,
            spread=random.random(),
            read_offset=offsets.get(prefixes.get(settings.key, "")),
            delay_s=0.0 if settings.name in going_on else START_SPACING_S * next(starts),
            unchecked=settings.contend,
            place=place,
            withheld=None if config.fleet else False,  # what is ordered for it is not read yet
        )
        for settings in config.items
    )


def read_offsets(prefixes: Mapping[str, str]) -> dict[str, float]:
    """Return, by prefix, the share of an interval at which its keys are read.

    Small groups are read at one time, because waking up costs more than a read.
    """
    offsets: dict[str, float] = {}
    offset, room = 0.0, 0
    for prefix, keys in sorted(Counter(prefixes.values()).items()):
        if keys > room:
            offset, room = random.random(), READ_TOGETHER_MAX
        offsets[prefix], room = offset, room - keys
    return offsets


def watched_together(config: Config) -> dict[str, str]:
    """Return, by key, the prefix of the keys that share a watch."""
    return watch_prefixes(*_keys(config))


def read_together(config: Config) -> dict[str, str]:
    """Return, by key, the prefix of the keys that are read together."""
    return read_prefixes(*_keys(config))


def _keys(config: Config) -> tuple[list[str], int]:
    """Return the keys of all elections, and how many queries they may have under way at a time."""
    keys = [settings.key for settings in config.items if isinstance(settings, ElectionSettings)]
    return keys, queries_for(len(keys), len(config.items) - len(keys))
