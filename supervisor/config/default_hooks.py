"""Gives each item the hooks of ``defaults`` that the item does not set itself.

The hooks are copied before anything is filled in or validated, so that later steps see hooks of items alone.
"""

from typing import Any

from supervisor.config.problems import Places, items_of
from supervisor.core.settings import HOOK_EVENTS

_COMMANDS = ("run", "candidate_check")


def copy_hooks(data: dict[str, Any], places: Places) -> None:
    """Copy, in place, the hooks of ``defaults`` into each item, and note in ``places`` where they come from.

    An observer takes on_change alone, and on_lose_failure goes to items with on_lose alone. An empty mapping
    for ``run`` or ``candidate_check`` means none, and is removed.
    ``data`` is not validated yet. Even a value of an unexpected shape is copied, because the schema refuses
    it later.
    """
    defaults = data.get("defaults")
    given = defaults if isinstance(defaults, dict) else {}
    for section, name, item in items_of(data):
        if not isinstance(item, dict):
            continue
        contends = item.get("contend") is not False
        for key in (*HOOK_EVENTS, *_COMMANDS):
            if key in item or key not in given or not (contends or key == "on_change"):
                continue
            if key != "on_lose_failure" or item.get("on_lose"):
                item[key] = _copy(given[key])
                places.copied((section, name, key), ("defaults", key))
        for key in _COMMANDS if contends else ():
            if item.get(key) == {}:
                del item[key]


def _copy(value: Any) -> Any:
    """Return a copy that shares no hook, because variables are filled in in place."""
    if isinstance(value, list):
        return [_copy(hook) for hook in value]
    return dict(value) if isinstance(value, dict) else value
