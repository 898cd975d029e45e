"""``/v1/txn``: the body as operations, the outcome as an answer."""

import base64
from dataclasses import replace
from typing import Any

from supervisor.rehearsal.devagent import txn
from supervisor.rehearsal.devagent.api.bodies import Fields, decode
from supervisor.rehearsal.devagent.api.call import LEADER, ApiRequest, refuse_large, text
from supervisor.rehearsal.devagent.kv import Entry
from supervisor.rehearsal.devagent.queries import entry_shape
from supervisor.rehearsal.devagent.txn import OPERATIONS, OPERATIONS_MAX, Operation
from supervisor.reporting.http_server import HttpAnswer

# What an answer shows besides when all operations only read.
READ = {"Index": 0, "LastContact": 0, "KnownLeader": True, "ConsistencyLevel": ""}
FIELDS = {"verb", "key", "value", "flags", "index", "session", "namespace"}


def transaction(call: ApiRequest) -> HttpAnswer:
    """Carry out a transaction; the answer is 409 when the server refused it."""
    refuse_large(call.request.body)
    try:
        operations = _operations(decode(call.request.body))
    except ValueError as error:
        return text(400, f"Failed to parse body: {error}")
    if len(operations) > OPERATIONS_MAX:
        words = f"Transaction contains too many operations ({len(operations)} > {OPERATIONS_MAX})"
        return text(413, words)
    call.check_datacenter()
    shown, failed = txn.run(call.store, operations, call.now)
    results = [{"KV": entry_shape(entry)} for entry in shown]
    errors = [{"OpIndex": position, "What": what} for position, what in failed]
    body = {"Results": None if errors else results, "Errors": errors or None}
    reads = txn.is_read(operations)
    answer = call.json(body | READ if reads else body, 409 if errors else 200)
    return replace(answer, headers=(*answer.headers, *LEADER)) if reads else answer


def _operations(body: Any) -> tuple[Operation, ...]:
    """Return the operations of a body. Raises ValueError."""
    if not isinstance(body, list):
        raise ValueError("a list of operations was expected")
    return tuple(_operation(Fields(wrapped)) for wrapped in body)


def _operation(wrapped: Fields) -> Operation:
    if wrapped.names != {"kv"}:
        raise ValueError("the embedded agent has operations on keys only (KV)")
    fields = Fields(wrapped.any("KV"))
    if others := fields.names - FIELDS:
        raise ValueError(f"unknown field {min(others):.50}")
    verb = fields.text("Verb")
    if verb not in OPERATIONS:
        raise ValueError(f"the embedded agent has no verb {verb:.50}, only {', '.join(sorted(OPERATIONS))}")
    entry = Entry(
        key=fields.text("Key"),
        value=base64.b64decode(fields.text("Value"), validate=True),
        flags=fields.number("Flags"),
        session=fields.text("Session"),
        modify_index=fields.number("Index"),
    )
    return verb, entry
