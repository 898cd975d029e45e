"""All keys below a prefix as one answer shows them."""

from collections.abc import Mapping
from typing import Any

import requests

from supervisor.adapters.consul.responses import MalformedResponse, index_of, json_of, number, text, value_of
from supervisor.core.frozen import dataclass
from supervisor.core.outcomes import KeyView, Unknown

LOCK_FLAGS = 3304740253564472344  # api.LockFlagValue of Consul's own client
NO_FLAGS = 0  # requests of Consul's guide name no flags, and `consul kv put` sets them to 0
# Those of a lock that has a tenure record: other programs and older releases leave such a key alone.
GUARDED_FLAGS = LOCK_FLAGS + 1
# Of one whose record may say more than a minute: releases that would read less in it leave the key alone too.
LONG_FLAGS = LOCK_FLAGS + 2
RECORD_FLAGS = (GUARDED_FLAGS, LONG_FLAGS)
OUR_FLAGS = (LOCK_FLAGS, *RECORD_FLAGS, NO_FLAGS)  # a key with other flags is another program's data


@dataclass(frozen=True, slots=True)
class Listing:
    """The answer to one recursive query."""

    index: int  # the X-Consul-Index, from which the next query waits
    entries: Mapping[str, Any]  # the entries as Consul shows them, by key

    @property
    def indexes(self) -> dict[str, int]:
        return {key: entry["ModifyIndex"] for key, entry in self.entries.items()}

    def outcome(self, key: str) -> KeyView | Unknown:
        """Return the outcome of a query for this key alone. The key must be in the listing."""
        try:
            return view_of(self.entries[key], self.entries[key]["ModifyIndex"])
        except MalformedResponse as error:
            return Unknown(f"not an answer of Consul: {error}")


def listed(response: requests.Response, prefix: str) -> Listing:
    """Decode the answer to a recursive query. A 404 means that there is no key below the prefix."""
    index = index_of(response)
    if response.status_code == 404:
        return Listing(index, {})
    entries = {text(entry, "Key"): entry for entry in json_of(response, list)}
    if not all(key.startswith(prefix) and number(entry, "ModifyIndex") for key, entry in entries.items()):
        raise MalformedResponse("another key than was asked for")
    return Listing(index, entries)


def view_of(entry: Any, index: int) -> KeyView:
    flags = number(entry, "Flags")
    return KeyView(
        index=index,
        session=text(entry, "Session", "") or None,
        value=value_of(entry),
        create_index=number(entry, "CreateIndex"),
        modify_index=number(entry, "ModifyIndex"),
        lock_index=number(entry, "LockIndex"),
        foreign_flags=0 if flags in OUR_FLAGS else flags,
        is_marked=flags in (LOCK_FLAGS, *RECORD_FLAGS),
        has_record_flags=flags in RECORD_FLAGS,
        is_long=flags == LONG_FLAGS,
    )
