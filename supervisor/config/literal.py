"""Refuses ``${`` in texts that are used literally, because nothing would fill in the reference there.

A shell reads ``shell``, and may read an argument of ``exec`` (``[sh, -c, 'echo ${X}']``), so those texts may
hold ``${``. No shell ever reads the program of ``exec``, a folder or the value of a variable.
"""

import re
from collections.abc import Iterator
from typing import Any

from supervisor.config.problems import KeyPath, Report, hooks_of, items_of

_REFERENCE = "${"
_IN_KEY = re.compile(r"\$[${]")  # a lone dollar may stand in a key, as in JSON's $schema
_CHECK = "write the check's id as Consul has it"
_REMEDIES = {
    "cwd": "write the path, or leave cwd out and change to the folder in shell",
    "exec": "write the program's path, or use shell in the place of exec",
    "env": "set the variable in shell; the daemon's own variables are inherited anyway",
    "state_dir": "write the path, or leave state_dir out and set STATE_DIRECTORY",
    "control_socket": "write the path, or leave control_socket out and set RUNTIME_DIRECTORY",
}


def refuse_references(data: dict[str, Any], report: Report) -> None:
    """Refuse each ``${`` where nothing is filled in and no shell reads the text, with the remedy.

    ``data`` is not validated yet. A value of an unexpected shape is passed over, because the schema refuses
    it later.
    """
    for path, text, remedy in _texts(data):
        if isinstance(text, str) and _REFERENCE in text:
            report.refuse(path, f"cannot hold ${{: no variable is filled in here; {remedy}")
    for path, hook in hooks_of(data):
        for place, key in _keys((*path, "body"), _mapping(hook).get("body")):
            if _IN_KEY.search(key):
                report.refuse_key(place, "cannot hold ${ or $$: only the values of a body are filled in")


_Text = tuple[KeyPath, Any, str]


def _texts(data: dict[str, Any]) -> Iterator[_Text]:
    """Yield each literal text with its path and the remedy."""
    for key in ("state_dir", "control_socket"):
        yield (key,), data.get(key), _REMEDIES[key]
    defaults = _mapping(data.get("defaults"))
    yield from _of_session(("defaults", "session"), defaults.get("session"))
    for key in ("hook", "lose_hook"):
        yield from _of_command(("defaults", key), defaults.get(key))
    for section, name, item in items_of(data):
        given = _mapping(item)
        yield from _of_session((section, name, "session"), given.get("session"))
        for key in ("run", "candidate_check"):
            yield from _of_command((section, name, key), given.get(key))
    for path, hook in hooks_of(data):
        yield from _of_command(path, hook)


def _of_session(path: KeyPath, session: Any) -> Iterator[_Text]:
    given = _mapping(session)
    for key in ("node_checks", "service_checks"):
        for index, check in enumerate(_list(given.get(key))):
            place = (*path, key, index)
            yield place, check, _CHECK
            if isinstance(check, dict):
                yield (*place, "id"), check.get("id"), _CHECK


def _of_command(path: KeyPath, command: Any) -> Iterator[_Text]:
    given = _mapping(command)
    yield (*path, "cwd"), given.get("cwd"), _REMEDIES["cwd"]
    for program in _list(given.get("exec"))[:1]:
        yield (*path, "exec", 0), program, _REMEDIES["exec"]
    for name, value in _mapping(given.get("env")).items():
        yield (*path, "env", name), value, _REMEDIES["env"]


def _keys(path: KeyPath, value: Any) -> Iterator[tuple[KeyPath, str]]:
    """Yield each key of the mappings in a value, with its path."""
    for key, member in _mapping(value).items():
        yield (*path, key), key
        yield from _keys((*path, key), member)
    for index, member in enumerate(_list(value)):
        yield from _keys((*path, index), member)


def _mapping(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []
