"""Keys and sessions as Consul's JSON shows them, with the fields in Consul's order."""

import base64
from typing import Any

from supervisor.rehearsal.devagent.kv import Entry
from supervisor.rehearsal.devagent.sessions import StoredSession


def entry_shape(entry: Entry) -> dict[str, Any]:
    """Return a key; an empty value is null, and a blank session is left out."""
    holder = {"Session": entry.session} if entry.session else {}
    return {
        "LockIndex": entry.lock_index,
        "Key": entry.key,
        "Flags": entry.flags,
        "Value": base64.b64encode(entry.value).decode() if entry.value else None,
        **holder,
        "CreateIndex": entry.create_index,
        "ModifyIndex": entry.modify_index,
    }


def session_shape(session: StoredSession) -> dict[str, Any]:
    """Return a session; LockDelay is in nanoseconds, as the client sent it."""
    services = [{"ID": name, "Namespace": ""} for name in session.service_checks]
    return {
        "ID": session.id,
        "Name": session.name,
        "Node": session.node,
        "LockDelay": session.lock_delay_ns,
        "Behavior": session.behavior,
        "TTL": session.ttl,
        "NodeChecks": list(session.node_checks),
        "ServiceChecks": services or None,
        "CreateIndex": session.create_index,
        "ModifyIndex": session.create_index,
    }
