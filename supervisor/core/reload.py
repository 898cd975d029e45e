"""The effect on each item when the file is read again while the process runs.

An item that did not change is not touched. An item that can go on by its new settings goes on. Any other item
is wound up in order, and begins anew after that. The functions here only plan; ``Contenders`` begins, changes
and ends items.
"""

from collections.abc import Mapping
from dataclasses import fields
from enum import StrEnum
from operator import attrgetter

from supervisor.core.contender.state import Contender
from supervisor.core.machines.record import goes_on_with
from supervisor.core.settings import ItemSettings, SessionSettings

_OF_SESSION = tuple(f"session.{each.name}" for each in fields(SessionSettings))
_KEPT = {name: attrgetter(name) for name in ("kind", "key", "contend", "run", *_OF_SESSION)}


class ReloadEffect(StrEnum):
    """The effect of a new file on one item."""

    UNCHANGED = "unchanged"
    CHANGES = "changed"
    RESTARTS = "restarted"
    BEGINS = "added"
    ENDS = "removed"


def plan_reload(
    contenders: Mapping[str, Contender],
    not_begun: Mapping[str, Contender],
    wanted: Mapping[str, ItemSettings],
) -> dict[str, ReloadEffect]:
    """Return the effect on each item of the former file and of the new one, by name.

    not_begun: the contenders in whose way another contender has not ended yet.
    """
    had = {name: contender for name, contender in contenders.items() if not contender.departing}
    effects = {name: ReloadEffect.ENDS for name in (*had, *not_begun)}
    for name, settings in wanted.items():
        if name in not_begun:
            same = not_begun[name].settings == settings
            effects[name] = ReloadEffect.UNCHANGED if same else ReloadEffect.CHANGES
        elif name in had:
            effects[name] = _effect_of(had[name], settings)
        else:
            effects[name] = ReloadEffect.BEGINS
    return effects


def _effect_of(contender: Contender, wanted: ItemSettings) -> ReloadEffect:
    if wanted == (contender.next_settings or contender.settings):
        return ReloadEffect.UNCHANGED
    return ReloadEffect.RESTARTS if restarted_by(contender, wanted) else ReloadEffect.CHANGES


def restarted_by(contender: Contender, wanted: ItemSettings) -> str:
    """Return the keys for which the item must wind up before it goes on by the new settings. Blank: none.

    A contender that holds, or may come to hold, also counts on the settings that its rivals know.
    """
    in_force = contender.settings
    found = [each.removesuffix("_s") for each, value in _KEPT.items() if value(in_force) != value(wanted)]
    may_hold = contender.tenure is not None or contender.session.tried
    if not found and may_hold and not goes_on_with(in_force, wanted):
        found.append(wanted.lockout_name)
    keys = ", ".join(found)
    return keys.replace("key", "prefix") if wanted.kind == "semaphore" else keys


def blockers_of(settings: ItemSettings, departing: Mapping[str, Contender]) -> frozenset[str]:
    """Return the departing items with this name or key, because a renamed item keeps its application."""
    keys = {name: contender.settings.key for name, contender in departing.items()}
    return frozenset(name for name, key in keys.items() if name == settings.name or key == settings.key)
