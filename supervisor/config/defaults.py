"""Gives each item the hooks of ``defaults``, and fills in every default of data that the schema has accepted.

A setting that an item does not have comes from the ``defaults`` of the file, or else from the schema. The
settings of ``consul``, ``state_dir`` and ``control_socket`` are not filled in here, because for them
variables of the environment come between the file and the schema.
"""

from copy import deepcopy
from typing import Any

from supervisor.config.problems import Positions, items_of
from supervisor.config.schema import Defaults
from supervisor.core.settings import HOOK_EVENTS

_NAME = "<name>"  # in a default, replaced by the item's name
_COMMANDS = ("run", "candidate_check", "fence")
SHOTS = "shots"  # the key of the notes of shots, below the prefix of the fleet
_OF_SHOTS = ("fleet", "fence_limit")  # what the whole file says of each fence
_FENCE = {"name": "fence", "retries": 1000, "retry_delay": "1s"}  # an earlier release reads its record so


def copy_hooks(data: dict[str, Any], positions: Positions) -> None:
    """Copy, in place, the hooks of ``defaults`` into each item, and note where they come from.

    An observer takes on_change alone, on_lose_failure goes to items with on_lose alone, and fence to
    elections alone. An empty mapping for one of _COMMANDS means none, and is removed.
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
            if key == "fence" and section != "elections":
                continue
            if key != "on_lose_failure" or item.get("on_lose"):
                item[key] = deepcopy(given[key])  # because variables are filled in in place
                positions.copied((section, name, key), ("defaults", key))
        for key in _COMMANDS if contends else ():
            if item.get(key) == {}:
                del item[key]


def apply_defaults(
    data: dict[str, Any], defaults: Defaults, values: dict[str, Any], hostname: str
) -> dict[str, Any]:
    """Return ``log``, ``elections`` and ``semaphores``, complete. ``values``: the value of each kind."""
    usual = _Usual(defaults, data, values, hostname)
    return {
        "log": {**defaults.of("log"), **data.get("log", {})},
        "elections": {name: usual.item("election", name, given) for name, given in data["elections"].items()},
        "semaphores": {name: usual.semaphore(name, given) for name, given in data["semaphores"].items()},
    }


class _Usual:
    """The defaults of the items of one file."""

    def __init__(
        self, defaults: Defaults, data: dict[str, Any], values: dict[str, Any], hostname: str
    ) -> None:
        given = data.get("defaults", {})
        session = {**defaults.of("session"), **defaults.of("session_defaults")}
        hook = {**defaults.of("hook"), **defaults.of("hook_defaults"), **given.get("hook", {})}
        lose = {**defaults.of("hook"), **defaults.of("lose_hook_defaults"), **given.get("lose_hook", {})}
        device = {**defaults.of("watchdog"), **data["watchdog"]} if "watchdog" in data else None
        self._items = {
            kind: {**defaults.of(kind), "value": value, "device": device} for kind, value in values.items()
        }
        self._sessions = {
            "election": {**session, **given.get("session", {})},
            "semaphore": {**session, "behavior": "delete", **given.get("session", {})},
        }
        self._hooks = {"on_acquire": hook, "on_change": hook, "on_lose": lose, "on_lose_failure": lose}
        self._commands = {
            "run": defaults.of("run"),
            "candidate_check": {**hook, **defaults.of("candidate_check")},
            "fence": {**hook, **defaults.of("fence"), **_FENCE},
            "fence_method": {**hook, **defaults.of("fence_method"), **_FENCE},
        }
        of_fleet, limit = ({**defaults.of(key), **data[key]} if key in data else None for key in _OF_SHOTS)
        self._shots = {"notes": f"{of_fleet['prefix']}/{SHOTS}" if of_fleet else "", "limit": limit}
        self._tls = defaults.of("tls")
        self._service = {**defaults.of("service"), "id": f"consul-supervisor:{hostname}:{_NAME}"}

    def item(self, kind: str, name: str, given: dict[str, Any]) -> dict[str, Any]:
        """Return an election with every setting, or a semaphore with every setting that elections have."""
        full = {**self._items[kind], "name": name, **given}
        for key in {"key", "prefix"} & (full.keys() - given.keys()):
            full[key] = full[key].replace(_NAME, name)
        session = {**self._sessions[kind], **given.get("session", {})}
        full["session"] = {**session, "name": session["name"].replace(_NAME, name)}
        for list_name, usual in self._hooks.items():
            full[list_name] = [
                self._hook({**usual, "name": f"{list_name}[{index}]", **hook})
                for index, hook in enumerate(full[list_name])
            ]
        for key in self._commands.keys() & given.keys() - {"fence"}:
            full[key] = self._hook({**self._commands[key], **given[key]})
        if "fence" in given:
            full["fence"] = self._fence(given["fence"])
        if "service" in given:
            service = {**self._service, **given["service"]}
            full["service"] = {**service, "id": service["id"].replace(_NAME, name)}
        return full

    def semaphore(self, name: str, given: dict[str, Any]) -> dict[str, Any]:
        """Return a semaphore with every setting. The default of ``prune_delay`` is its ``lock_delay``."""
        full = self.item("semaphore", name, given)
        return {"prune_delay": full["session"]["lock_delay"], **full}

    def _fence(self, given: dict[str, Any]) -> dict[str, Any]:
        """Return the fence with a list of its methods, also where it is the only one."""
        usual = self._commands["fence_method" if "try" in given else "fence"]
        methods = [
            {**usual, "name": f"fence[{index}]", **each} for index, each in enumerate(given.get("try", ()))
        ]
        methods = [self._hook(each) for each in methods or [{**usual, **given}]]
        return {**self._commands["fence"], **given, "try": methods, **self._shots}

    def _hook(self, full: dict[str, Any]) -> dict[str, Any]:
        return {**full, "tls": {**self._tls, **full.get("tls", {})}}
