"""What Consul says of all keys below a prefix. Raises MalformedResponse for whatever is not its answer."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import requests

from supervisor.consul.responses import MalformedResponse, index_of, json_of, number, text, value_of
from supervisor.core.outcomes import KeyView, Unknown

LOCK_FLAGS = 3304740253564472344  # api.LockFlagValue of Consul's own client
NO_FLAGS = 0  # the guide's requests name none, and `consul kv put` takes them away
OUR_FLAGS = (LOCK_FLAGS, NO_FLAGS)  # a key with any others is another program's data


@dataclass(frozen=True, slots=True)
class Listing:
    """``index``: what the next query waits from. ``entries``: as Consul shows them, by their keys."""

    index: int
    entries: Mapping[str, Any]

    @property
    def indexes(self) -> dict[str, int]:
        """The ModifyIndex of each key."""
        return {key: entry["ModifyIndex"] for key, entry in self.entries.items()}

    def outcome(self, key: str) -> KeyView | Unknown:
        """What a question for this key alone would be answered; it must be listed."""
        try:
            return view_of(self.entries[key], self.entries[key]["ModifyIndex"])
        except MalformedResponse as error:
            return Unknown(f"not an answer of Consul: {error}")


def listed(response: requests.Response, prefix: str) -> Listing:
    """The answer to a recursive query; 404 where there is no key at all."""
    index = index_of(response)
    if response.status_code == 404:
        return Listing(index, {})
    entries = {text(entry, "Key"): entry for entry in json_of(response, list)}
    if not all(key.startswith(prefix) and number(entry, "ModifyIndex") for key, entry in entries.items()):
        raise MalformedResponse("another key than was asked for")
    return Listing(index, entries)


def view_of(entry: Any, index: int) -> KeyView:
    """One key as Consul shows it."""
    flags = number(entry, "Flags")
    return KeyView(
        index=index,
        session=text(entry, "Session", ""),
        value=value_of(entry),
        create_index=number(entry, "CreateIndex"),
        modify_index=number(entry, "ModifyIndex"),
        lock_index=number(entry, "LockIndex"),
        foreign_flags=0 if flags in OUR_FLAGS else flags,
    )
