"""Fills in every default, in one pass over data that the schema has accepted.

What an item does not say comes from the ``defaults`` of the file, and what those do not say from the
schema. The settings of ``consul``, ``state_dir`` and ``control_socket`` are not filled in here, because
variables of the environment count between the file and the schema there.
"""

from typing import Any

from supervisor.config.schema import Defaults

_NAME = "<name>"  # in a default: the item's name


def apply_defaults(data: dict[str, Any], defaults: Defaults, values: dict[str, Any]) -> dict[str, Any]:
    """Return the sections ``log``, ``elections`` and ``semaphores``, each of them complete.

    ``values`` says what a key holds where its item does not say, by the item's kind.
    """
    usual = _Usual(defaults, data.get("defaults", {}), values)
    return {
        "log": {**defaults.of("log"), **data.get("log", {})},
        "elections": {name: usual.item("election", name, given) for name, given in data["elections"].items()},
        "semaphores": {name: usual.semaphore(name, given) for name, given in data["semaphores"].items()},
    }


class _Usual:
    """What the items of one file are where they do not say otherwise."""

    def __init__(self, defaults: Defaults, given: dict[str, Any], values: dict[str, Any]) -> None:
        session = {**defaults.of("session"), **defaults.of("session_defaults")}
        hook = {**defaults.of("hook"), **defaults.of("hook_defaults"), **given.get("hook", {})}
        lose = {**defaults.of("hook"), **defaults.of("lose_hook_defaults"), **given.get("lose_hook", {})}
        self._items = {kind: {**defaults.of(kind), "value": value} for kind, value in values.items()}
        self._sessions = {
            "election": {**session, **given.get("session", {})},
            "semaphore": {**session, "behavior": "delete", **given.get("session", {})},
        }
        self._hooks = {"on_acquire": hook, "on_change": hook, "on_lose": lose, "on_lose_failure": lose}
        self._commands = {
            "run": defaults.of("run"),
            "candidate_check": {**hook, **defaults.of("candidate_check")},
        }
        self._tls = defaults.of("tls")

    def item(self, kind: str, name: str, given: dict[str, Any]) -> dict[str, Any]:
        """Complete one election, or what semaphores have in common with it."""
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
        for key in self._commands.keys() & given.keys():
            full[key] = {**self._commands[key], **given[key]}
        return full

    def semaphore(self, name: str, given: dict[str, Any]) -> dict[str, Any]:
        """Complete one semaphore; its slots are guarded for ``lock_delay`` unless it says otherwise."""
        full = self.item("semaphore", name, given)
        return {"prune_delay": full["session"]["lock_delay"], **full}

    def _hook(self, full: dict[str, Any]) -> dict[str, Any]:
        return {**full, "tls": {**self._tls, **full.get("tls", {})}}
