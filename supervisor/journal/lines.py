"""The journal's format: lines of text, each with its checksum; the newest tells the whole truth.

    1f4e2a90 {"record":"settings","item":"namenode","settings":{...},"consul":{...}}
    77c01d35 {"record":"state","time":"2026-11-21T03:04:05Z","boot":"...","step":"holding",...}

A state needs only the settings before it. A last line without its end was never acknowledged to
anybody, so nothing was done that depended on it: it does not count, nor do the spaces at the end,
which keep room (a power loss may leave NUL bytes for them). A complete line with a wrong checksum is
another thing: if it is the newest, nobody knows what was held, and that is said and never taken for
nothing. Pure functions of bytes; this module must never touch a file.
"""

import json
import zlib
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from supervisor.config.settings import ConsulSettings
from supervisor.core.actions import NOTHING, Memory
from supervisor.core.settings import ItemSettings, Settings
from supervisor.journal.values import from_plain, to_plain
from supervisor.leftovers import Group

LEADER_BYTES_MAX = 4096  # a longer value is not kept: hooks are told nothing, reads bring it back


@dataclass(frozen=True, slots=True)
class Identity:
    """Whose record it is: a cloned disk or another boot must not act on the original's lock."""

    machine: str
    host: str
    boot: str


@dataclass(frozen=True, slots=True)
class Recorded:
    """One item as an earlier process left it. ``groups``: process groups of hooks under way;
    ``withheld``: variables that its hooks must not inherit."""

    settings: ItemSettings
    consul: ConsulSettings
    memory: Memory
    identity: Identity
    groups: tuple[Group, ...] = ()
    withheld: tuple[str, ...] = ()


class Unreadable(Exception):
    """The newest record cannot be read: what was held is not known. The message says why.

    ``last``: what the newest of its older lines that can be read tells, and what goes with it.
    """

    def __init__(self, why: str, last: Recorded | None = None) -> None:
        super().__init__(why)
        self.last = last
        self.settings = None if last is None else last.settings
        self.consul = None if last is None else last.consul
        self.withheld = () if last is None else last.withheld


def settings_line(settings: ItemSettings, consul: ConsulSettings, withheld: tuple[str, ...]) -> bytes:
    """By what the item would be wound up; without a token, which is read where it stands."""
    reached = {name: part for name, part in to_plain(consul).items() if name != "token"}
    content = {"record": "settings", "item": settings.name, "settings": to_plain(settings)}
    return _line(content | {"consul": reached, "withheld": to_plain(withheld)})


def state_line(memory: Memory, groups: tuple[Group, ...], identity: Identity, time: str) -> bytes:
    """The whole truth of this moment. ``time``: of the wall clock, for who reads the file."""
    state = to_plain(memory)
    for name in ("leader", "previous_leader"):
        if len(getattr(memory, name) or b"") > LEADER_BYTES_MAX:
            del state[name]
    content = {"record": "state", "time": time} | state | to_plain(identity)
    return _line(content | {"groups": [to_plain(group) for group in groups]})


def read(data: bytes) -> Recorded | None:
    """What this file says; None when it says nothing. Raises Unreadable."""
    contents = [_content(line) for line in data.rstrip(b" \0").split(b"\n")[:-1]]
    try:
        return _newest(list(contents))
    except Unreadable as unreadable:
        raise Unreadable(str(unreadable), _last_readable(contents)) from unreadable


def _newest(contents: list[dict[str, Any] | None]) -> Recorded | None:
    if contents and contents[-1] is None:
        raise Unreadable("the checksum of its newest line is wrong")
    # Settings that no state follows were never acknowledged: what stood before them still holds.
    while contents and contents[-1] is not None and contents[-1].get("record") == "settings":
        contents.pop()
    if not contents:
        return None
    state = contents.pop()
    settings = next((each for each in reversed(contents) if each and each["record"] == "settings"), None)
    if state is None or settings is None:
        raise Unreadable("the checksum of a line that counts is wrong")
    return _recorded(settings, state)


def _recorded(settings: dict[str, Any], state: dict[str, Any]) -> Recorded:
    try:
        return Recorded(
            settings=from_plain(Settings, settings["settings"]),
            consul=from_plain(ConsulSettings, settings["consul"]),
            memory=from_plain(Memory, state),
            identity=from_plain(Identity, state),
            groups=from_plain(tuple[Group, ...], state["groups"]),
            withheld=from_plain(tuple[str, ...], settings["withheld"]),
        )
    except (KeyError, ValueError, TypeError, AttributeError, StopIteration) as error:
        raise Unreadable(f"it is not a record of this program: {error}") from error


def _last_readable(contents: list[dict[str, Any] | None]) -> Recorded | None:
    settings, last = None, None
    for content in contents:
        kind = content.get("record") if content is not None else None
        if kind == "settings":
            settings = content
        elif kind == "state" and content is not None and settings is not None:
            with suppress(Unreadable):
                last = _recorded(settings, content)
    return last


def _line(content: dict[str, Any]) -> bytes:
    text = json.dumps(content, separators=(",", ":")).encode()
    return b"%08x %s\n" % (zlib.crc32(text), text)


def _content(line: bytes) -> dict[str, Any] | None:
    """None: not as it was written."""
    checksum, _, text = line.partition(b" ")
    if checksum != b"%08x" % zlib.crc32(text):
        return None
    with suppress(ValueError, RecursionError):
        content = json.loads(text)
        return content if isinstance(content, dict) else None
    return None


def is_at_rest(memory: Memory, groups: tuple[Group, ...]) -> bool:
    """Whether there is nothing that a crash could make us forget."""
    return memory == NOTHING and not groups
