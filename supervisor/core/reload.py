"""The effect on each item when the file is read again while the process runs.

An item that did not change is not touched. An item that can go on by its new settings goes on. Any other item
is wound up in order, and begins anew after that. The functions here only plan; ``Contenders`` begins, changes
and ends items.
"""

from collections.abc import Mapping
from enum import StrEnum

from supervisor.core.contender.state import Contender
from supervisor.core.machines.record import goes_on_with
from supervisor.core.settings import ItemSettings


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
    return ReloadEffect.CHANGES if _may_change(contender, wanted) else ReloadEffect.RESTARTS


def _may_change(contender: Contender, wanted: ItemSettings) -> bool:
    """Return whether the item can go on by the new settings, without winding up.

    It cannot when its kind, key, session or run changes. A contender that holds, or may come to hold, also
    counts on the settings that its rivals know.
    """
    in_force = contender.settings
    if (wanted.kind, wanted.key, wanted.contend) != (in_force.kind, in_force.key, in_force.contend):
        return False
    if wanted.session != in_force.session or wanted.run != in_force.run:
        return False
    may_hold = contender.tenure is not None or contender.session.tried
    return not may_hold or goes_on_with(in_force, wanted)


def blockers_of(settings: ItemSettings, departing: Mapping[str, Contender]) -> frozenset[str]:
    """Return the departing items with this name or key, because a renamed item keeps its application."""
    keys = {name: contender.settings.key for name, contender in departing.items()}
    return frozenset(name for name, key in keys.items() if name == settings.name or key == settings.key)
