"""The journal's format: lines of text, each with its checksum, of which the newest state is complete.

    1f4e2a90 {"record":"settings","item":"namenode","settings":{...},"consul":{...}}
    77c01d35 {"record":"state","time":"2026-11-21T03:04:05Z","boot":"...","step":"holding",...}

A state needs only the settings before it. The newest line is a state, ends with its line feed, and has at
least one space behind it, because spaces keep room for the next lines. A file that ends otherwise (in the
middle of a line, right behind a line, with NUL bytes, with settings, without any line) has been cut or
damaged, and so has a file whose newest line has a wrong checksum. Then it is not known whether a tenure was
under way. This is reported and never taken for an empty record, because an unneeded on_lose is safe and a
forgotten tenure is not. A kill of this program leaves no such file, because the kernel takes each line by one
write, and a new file takes its place only when it is whole. Pure functions of bytes; this module must never
touch a file.
"""

from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

from supervisor.adapters.hooks.abandoned import Group
from supervisor.adapters.journal.checked_line import content_of, line_of
from supervisor.adapters.journal.identity import MachineIdentity
from supervisor.adapters.journal.serialize import from_plain, to_plain, without_defaults
from supervisor.config.formats.slot_record import SESSION
from supervisor.config.settings import ConsulSettings
from supervisor.core.actions import EMPTY_RECORD, Point, Record
from supervisor.core.settings import ItemSettings, Settings

SECRETS = ("token", "http_auth")  # of Consul's settings
LEADER_BYTES_MAX = 4096  # a longer value is not recorded, so hooks get it again only after a read


@dataclass(frozen=True, slots=True)
class Recorded:
    """One item as an earlier process left it."""

    settings: ItemSettings
    consul: ConsulSettings
    state: Record
    identity: MachineIdentity
    groups: tuple[Group, ...] = ()  # the process groups of hooks that were under way
    withheld: tuple[str, ...] = ()  # the variables that its hooks must not inherit


class UnreadableRecord(Exception):
    """The newest record cannot be read, so it is not known whether a tenure was under way.

    The message has the reason.

    last: the newest older record that can be read, with its settings. Where only settings can be read, it is
        an empty record of no machine. None: not even settings can be read.
    """

    def __init__(self, why: str, last: Recorded | None = None) -> None:
        super().__init__(why)
        self.last = last
        self.settings = None if last is None else last.settings
        self.consul = None if last is None else last.consul
        self.withheld = () if last is None else last.withheld


def settings_line(settings: ItemSettings, consul: ConsulSettings, withheld: tuple[str, ...]) -> bytes:
    """Return the line of the settings by which the item would be wound up.

    Consul's secrets are left out, because a later process reads them where the configuration has them.
    """
    reached = {name: part for name, part in without_defaults(consul).items() if name not in SECRETS}
    content = {"record": "settings", "item": settings.name, "settings": without_defaults(settings)}
    return line_of(content | {"consul": reached, "withheld": to_plain(withheld)})


def state_line(record: Record, groups: tuple[Group, ...], identity: MachineIdentity, time: str) -> bytes:
    """Return the line of the whole state. ``time`` is of the wall clock, because people read the file."""
    state = to_plain(record)
    for name in ("leader", "previous_leader"):
        if len(getattr(record, name) or b"") > LEADER_BYTES_MAX:
            del state[name]
    content = {"record": "state", "time": time} | state | _plain_identity(identity)
    return line_of(content | {"groups": [to_plain(group) for group in groups]})


@cache
def _plain_identity(identity: MachineIdentity) -> Any:
    return to_plain(identity)


def read(data: bytes) -> Recorded:
    """Return the record in this content of a file. Raises UnreadableRecord."""
    lines = data.rstrip(b" ")
    contents = [content_of(line) for line in lines.split(b"\n")[:-1]]
    try:
        _refuse_a_cut(data, lines)
        return _newest(contents)
    except UnreadableRecord as unreadable:
        raise UnreadableRecord(str(unreadable), _last_readable(contents)) from unreadable


def _refuse_a_cut(data: bytes, lines: bytes) -> None:
    if not lines:
        raise UnreadableRecord("it is empty: its content has been removed")
    if not lines.endswith(b"\n"):
        raise UnreadableRecord("its last line has no end: it has been cut or damaged")
    if lines == data:
        raise UnreadableRecord("the spaces behind its last line are missing: it has been cut")


def _newest(contents: list[dict[str, Any] | None]) -> Recorded:
    *before, state = contents
    settings = next((each for each in reversed(before) if _is_settings(each)), None)
    if state is None:
        raise UnreadableRecord("the checksum of its newest line is wrong")
    if _is_settings(state):
        raise UnreadableRecord("no state follows its newest settings: it has been cut or damaged")
    if settings is None:
        raise UnreadableRecord("the checksum of a line that counts is wrong")
    return _recorded(settings, state)


def _is_settings(content: dict[str, Any] | None) -> bool:
    return content is not None and content.get("record") == "settings"


def _recorded(settings: dict[str, Any], state: dict[str, Any]) -> Recorded:
    try:
        return Recorded(
            settings=from_plain(Settings, settings["settings"]),
            consul=from_plain(ConsulSettings, settings["consul"]),
            state=_state(state),
            identity=from_plain(MachineIdentity, state),
            groups=from_plain(tuple[Group, ...], state["groups"]),
            withheld=from_plain(tuple[str, ...], settings["withheld"]),
        )
    except (KeyError, ValueError, TypeError, AttributeError, StopIteration) as error:
        raise UnreadableRecord(f"it is not a record of this program: {error}") from error


def _state(state: dict[str, Any]) -> Record:
    """Return the record of this line.

    A session whose ID Consul cannot have made is dropped, because a broken peer once returned such an ID and
    there is nothing to end. Raises ValueError when a tenure has such a session.
    """
    record = from_plain(Record, state)
    assert isinstance(record, Record)
    if record.session and not SESSION.fullmatch(record.session):
        if record.step is not Point.SESSION:
            raise ValueError("the session of its tenure has an ID that Consul cannot have made")
        return replace(record, step=Point.NONE, key="", session="")
    return record


def _last_readable(contents: list[dict[str, Any] | None]) -> Recorded | None:
    """Return the newest record that can be read. Settings without a readable state make an empty one."""
    settings: dict[str, Any] | None = None
    last: Recorded | None = None
    for content in contents:
        state = content
        if _is_settings(content):
            settings, state = content, _NO_STATE if last is None else None
        if settings is not None and state is not None and state.get("record") == "state":
            with suppress(UnreadableRecord):
                last = _recorded(settings, state)
    return last


_NO_STATE: dict[str, Any] = {
    "record": "state",
    "groups": [],
    **to_plain(EMPTY_RECORD),
    **to_plain(MachineIdentity("", "", "")),
}
