"""The values of the tables as Consul's JSON shows them, fields in its order."""

import base64
from typing import Any

from supervisor.devagent.catalog import Check
from supervisor.devagent.kv import Entry
from supervisor.devagent.sessions import Session


def entry_shape(entry: Entry) -> dict[str, Any]:
    """A key; an empty value is null, and a blank session is left out."""
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


def session_shape(session: Session) -> dict[str, Any]:
    """A session; LockDelay in nanoseconds, as it was given."""
    service_checks = session.service_checks
    checks = {"Checks": list(session.checks)} if session.checks else {}
    return {
        "ID": session.id,
        "Name": session.name,
        "Node": session.node,
        "LockDelay": session.lock_delay_ns,
        "Behavior": session.behavior,
        "TTL": session.ttl,
        "NodeChecks": None if session.node_checks is None else list(session.node_checks),
        "ServiceChecks": None
        if service_checks is None
        else [{"ID": name, "Namespace": ""} for name in service_checks],
        **checks,
        "CreateIndex": session.create_index,
        "ModifyIndex": session.create_index,
    }


def check_shape(node: str, check: Check, *, local: bool = False) -> dict[str, Any]:
    """A check; ``local``: as its own agent shows it, without indexes."""
    return {
        "Node": node,
        "CheckID": check.id,
        "Name": check.name,
        "Status": check.status,
        "Notes": check.notes,
        "Output": check.output,
        "ServiceID": check.service_id,
        "ServiceName": check.service_name,
        "ServiceTags": [],
        "Type": check.kind,
        "Definition": {},
        "CreateIndex": 0 if local else check.create_index,
        "ModifyIndex": 0 if local else check.modify_index,
    }
