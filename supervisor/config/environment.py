"""Fills in ``${NAME}`` in the few texts of a file that may use the environment.

The result is always text and is never expanded again, so that a variable cannot bring in YAML, another
variable or a second value. ``shell`` and ``exec`` are left as they are, because ``$`` belongs to the shell
there. No message shows the value of a variable.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from supervisor.config.formats.templates import FACTS, PREFIX, literal
from supervisor.config.problems import KeyPath, Report, hooks_of, items_of, nearest, quoted

ANY_TEXT = "\ufffc"  # in the session name of a query: a variable, whose value other nodes may not share
EVERY_ITEM = "*"  # the name of a query about all items; no item has it
FILLED_CHARS_MAX = 1024 * 1024  # of all references together, as much as a file may hold

_TEMPLATES = ("webhook", "headers", "body")  # the fields of a webhook in which facts may stand
_OF_HOOK = (*_TEMPLATES, "secret_file", "tls")
_OF_ITEM = ("key", "prefix", "value")
_OF_PARTS = {"session": ("name",), "service": ("address", "tags", "meta"), "fence": ("target",)}
_SOME_URL = "http://localhost/"
_REFERENCE = re.compile(r"\$(?:(\$)|\{([A-Za-z_][A-Za-z0-9_]*)(?::-[^${}\"\\]*)?\})?")
_UNSENDABLE = re.compile("[\x00-\x08\x0b-\x1f\ud800-\udfff]")  # surrogates: bytes that were not UTF-8


class CannotFill(Exception):
    """A reference in a text cannot be filled in. The message says why, and the remedy."""


class Variables:
    """The variables of the environment. HOSTNAME is always this machine's name."""

    def __init__(self, environ: Mapping[str, str], hostname: str) -> None:
        self._values = {**environ, "HOSTNAME": hostname}
        self._chars_left = FILLED_CHARS_MAX

    def fill(self, text: str) -> str:
        """Return ``text`` with every reference filled in. Raises CannotFill."""
        return _REFERENCE.sub(self._value, text) if "$" in text else text

    def fill_template(self, text: str) -> str:
        """Return ``text`` as a template: each dollar is doubled, except in references to facts of an event.

        Every other reference is filled in. Raises CannotFill. Each reference counts against FILLED_CHARS_MAX.
        """
        return _REFERENCE.sub(self._template, text) if "$" in text else text

    def refers_to_unset(self, value: Any) -> bool:
        names = (name for text in _texts(value) for _, name in _REFERENCE.findall(text))
        return any(name and name not in self._values for name in names)

    def _template(self, reference: re.Match[str]) -> str:
        name = reference[2]
        if name is None or not name.startswith(PREFIX):
            return literal(self._value(reference))
        known = [fact.upper() for fact in FACTS]
        fact = name.removeprefix(PREFIX)
        if fact not in known:
            match = nearest(fact, known)
            hint = (
                f"did you mean {PREFIX}{match}?" if match else f"known behind {PREFIX} are {', '.join(known)}"
            )
            raise CannotFill(f"cannot be filled in: events have no {quoted(name)}, {hint}")
        return reference[0]

    def _value(self, reference: re.Match[str]) -> str:
        dollar, name = reference.groups()
        if dollar:
            return "$"
        if name is None:
            raise CannotFill("cannot hold a $ that begins no ${NAME}: write $$ for a dollar")
        if ":-" in reference[0] and not name.startswith(PREFIX):
            raise CannotFill(
                f"cannot hold {quoted(':-')}: only a fact of an event has a text for its absence"
            )
        if name not in self._values and name.startswith(PREFIX):
            raise CannotFill("cannot hold a fact: write it in the URL, a header or the body of a webhook")
        if name not in self._values:
            where = f"in the unit for the daemon, by {name}=VALUE before consul-supervisor for a command"
            raise CannotFill(f"cannot be filled in: the environment has no {name}, set it ({where})")
        value = self._values[name]
        if _UNSENDABLE.search(value):
            raise CannotFill(f"cannot be filled in: {name} is not UTF-8 or has control characters")
        self._chars_left -= len(value)
        if self._chars_left < 0:
            raise CannotFill(f"cannot be filled in: more than {FILLED_CHARS_MAX} characters in all")
        return value


def secret_variables(data: dict[str, Any]) -> frozenset[str]:
    """Return the variables that fill Consul's token, or a webhook's URL, header, or body that is no text.

    Hooks must not inherit these variables. HOSTNAME is not among them, because a machine's name is no secret.
    """
    section = data.get("consul")
    values = [section.get("token")] if isinstance(section, dict) else []
    for hook in (hook for _, hook in hooks_of(data) if isinstance(hook, dict)):
        values += [hook.get("webhook"), hook.get("headers")]
        values += [hook.get("body")] if not isinstance(hook.get("body"), str) else []
    found = (name for value in values for text in _texts(value) for _, name in _REFERENCE.findall(text))
    return frozenset(name for name in found if name and not name.startswith(PREFIX)) - {"HOSTNAME"}


def _texts(value: Any) -> Iterator[str]:
    """Yield each text of a value, without the keys of mappings."""
    if isinstance(value, str):
        yield value
    for member in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from _texts(member)


def _places(data: dict[str, Any]) -> Iterator[tuple[dict[str, Any], str, KeyPath]]:
    """Yield each value whose texts may use the environment: the mapping that has it, its key, and its path.

    ``data`` is not validated yet. A value of an unexpected shape is passed over: the schema refuses it later.
    """
    found: list[tuple[Any, KeyPath, tuple[str, ...]]] = [(data, (), ("consul",))]
    found.append((data.get("http"), ("http",), ("public_url",)))
    for section, name, item in items_of(data):
        found.append((item, (section, name), _OF_ITEM))
        for part, names in _OF_PARTS.items() if isinstance(item, dict) else ():
            found.append((item.get(part), (section, name, part), names))
    found += [(hook, path, _OF_HOOK) for path, hook in hooks_of(data)]
    for mapping, path, names in found:
        for name in names if isinstance(mapping, dict) else ():
            if name in mapping:
                yield mapping, name, (*path, name)


def fill_in(data: dict[str, Any], variables: Variables, report: Report) -> None:
    """Fill in the texts that may use the environment, in place.

    A webhook's URL, headers and body become templates, in which each dollar is doubled.
    """
    for mapping, key, path in _places(data):
        by = variables.fill_template if key in _TEMPLATES else variables.fill
        mapping[key] = _filled(mapping[key], path, by, report)


def _filled(value: Any, path: KeyPath, by: Callable[[str], str], report: Report) -> Any:
    if isinstance(value, dict):
        return {key: _filled(member, (*path, key), by, report) for key, member in value.items()}
    if isinstance(value, list):
        return [_filled(item, (*path, index), by, report) for index, item in enumerate(value)]
    if not isinstance(value, str):
        return value
    try:
        return by(value)
    except CannotFill as error:
        report.refuse(path, str(error))
        return value


def leave_out_unset(data: dict[str, Any], variables: Variables, asked: str) -> None:
    """Remove, in place, each text that refers to an unset variable and is not needed for a query.

    A query about the item ``asked`` needs the texts of ``consul``, and the item's key or prefix. In names of
    sessions each variable becomes ANY_TEXT, because the sessions of other nodes have other values there.
    """
    for mapping, key, path in _places(data):
        is_needed = key in ("consul", "name") or (key in ("key", "prefix") and asked in (path[1], EVERY_ITEM))
        if key == "name" and isinstance(named := mapping[key], str):
            mapping[key] = _REFERENCE.sub(lambda found: ANY_TEXT if found[2] else found[0], named)
        elif not is_needed and variables.refers_to_unset(mapping[key]):
            del mapping[key]
            if key == "webhook":
                mapping[key] = _SOME_URL  # without a URL the schema would refuse the hook
